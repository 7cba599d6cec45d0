/** One invalid field of a request. */
export interface FieldError {
  field: string;
  message: string;
}

/** The service refused a request. `code` is stable; `message` is for people. */
export class RecollectError extends Error {
  override name = "RecollectError";

  constructor(
    message: string,
    /** The stable code of the problem, such as `not_found` or `rate_limited`. */
    readonly code: string,
    readonly status: number,
    readonly errors: readonly FieldError[] = [],
    /** Report it to the operator of the service. */
    readonly requestId: string | undefined = undefined,
  ) {
    super(message);
  }
}

/** The object does not exist, or belongs to somebody else. */
export class NotFoundError extends RecollectError {
  override name = "NotFoundError";
}

/** The stored data is not what the request expects. Nothing was changed. */
export class ConflictError extends RecollectError {
  override name = "ConflictError";
}

/** The request has invalid fields, which `errors` names. */
export class InvalidRequestError extends RecollectError {
  override name = "InvalidRequestError";
}

/** The key is missing or wrong, or lacks a scope. */
export class AccessDeniedError extends RecollectError {
  override name = "AccessDeniedError";
}

/** No usable answer came. A write without an idempotency key may have happened. */
export class ConnectionError extends Error {
  override name = "ConnectionError";
}

interface Problem {
  code?: string;
  detail?: string;
  errors?: FieldError[];
  request_id?: string;
}

/** The error for a response that is no success. */
export async function errorFrom(response: Response): Promise<Error> {
  const problem = (await response.json().catch(() => ({}))) as Problem;
  if (typeof problem.code !== "string") {
    return new ConnectionError(`status ${response.status} without a problem document: is this a Recollect service?`);
  }
  const kind = kindOf(response.status);
  return new kind(
    problem.detail ?? `status ${response.status}`,
    problem.code,
    response.status,
    problem.errors ?? [],
    problem.request_id,
  );
}

function kindOf(status: number): typeof RecollectError {
  if (status === 404) return NotFoundError;
  if (status === 409 || status === 412) return ConflictError;
  if (status === 401 || status === 403) return AccessDeniedError;
  if (status === 400 || status === 422) return InvalidRequestError;
  return RecollectError;
}
