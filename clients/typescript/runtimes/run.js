// In Node, Deno and Bun: the outcome as JSON.
import { smoke } from "./smoke.js";

const { RECOLLECT_URL: url, CUTTING_URL: cuttingUrl, RECOLLECT_KEY: key } = process.env;
console.log(JSON.stringify(await smoke({ url, cuttingUrl, key })));
