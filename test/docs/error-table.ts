import { ERRORS, type ErrorName, EVALUATION_FAULTS } from 'osl-compiler';

/** One line of `docs/errors.md`: what an entry of the catalogue says, its parameters shown as ‹name›. */
export interface ErrorLine {
  readonly name: ErrorName;
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly message: string;
  readonly hint: string;
}

export function errorLines(): readonly ErrorLine[] {
  // Every key of the catalogue is an ErrorName; Object.keys only says string.
  const names = Object.keys(ERRORS) as ErrorName[];
  return names.map(errorLine).sort((a, b) => (a.code < b.code ? -1 : a.code > b.code ? 1 : 0));
}

function errorLine(name: ErrorName): ErrorLine {
  const entry = ERRORS[name];
  const shown = new Proxy(
    {},
    { get: (_, key) => (key === Symbol.toPrimitive ? undefined : `‹${String(key)}›`) },
  );
  const { message, hint } = entry as { message: (p: unknown) => string; hint: (p: unknown) => string | null }; // called with placeholders, whatever its parameters
  return {
    name,
    code: entry.code,
    sqlstate: entry.sqlstate,
    http: entry.http,
    message: message(shown),
    hint: hint(shown) ?? '',
  };
}

/** The whole page. */
export function errorPage(): string {
  const rows = errorLines().map((l) => {
    return row([l.code, l.sqlstate, String(l.http), l.message, l.hint, `\`${l.name}\``]);
  });
  const faults = [...EVALUATION_FAULTS].map(([sqlstate, [message, hint]]) =>
    row([sqlstate, message, hint ?? '']),
  );
  return `${HEAD}\n${rows.join('\n')}\n\n${EVALUATIONS}\n${faults.join('\n')}\n`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((c) => c.replaceAll('|', '\\|')).join(' | ')} |`;
}

const EVALUATIONS = `## Values that cannot be computed with

A mistake in a value is the caller's, and 400. What can be seen of a literal or a parameter before the question runs is E0511: a literal that has not the form of its type, or that its type does not hold. What only comes out when the database computes is E0529, with the SQLSTATE of the database; its message and hint say:

| SQLSTATE | message | hint |
|---|---|---|`;

const HEAD = `# Errors

Every refusal has a code of this table, the same on every surface: \`code\` and \`sqlstate\` in REST's problem+json, SQLSTATE and DETAIL on the wire. Codes are stable; a retired one is not used again. Several conditions may share a code where the contract gives them one. \`osl errors CODE\` prints a code's lines.

Of a failure inside a database, its SQLSTATE passes and its words do not: they could hold values. The request id joins what the caller sees with the server's log and the audit records.

| code | SQLSTATE | HTTP | message | hint | entry |
|---|---|---|---|---|---|`;
