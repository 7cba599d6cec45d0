"""What the threat model promises, where no other suite tests it; the scan for secrets and the audit."""
