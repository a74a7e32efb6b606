import { ERRORS, type ErrorName } from 'osl-compiler';

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
    const cells = [l.code, l.sqlstate, String(l.http), l.message, l.hint, `\`${l.name}\``];
    return `| ${cells.map((c) => c.replaceAll('|', '\\|')).join(' | ')} |`;
  });
  return `${HEAD}\n${rows.join('\n')}\n`;
}

const HEAD = `# Errors

Every refusal has a code of this table, the same on every surface: \`code\` and \`sqlstate\` in REST's problem+json, SQLSTATE and DETAIL on the wire. Codes are stable; a retired one is not used again. Several conditions may share a code where the contract gives them one. \`osl errors CODE\` prints a code's lines.

Of a failure inside a database, its SQLSTATE passes and its words do not: they could hold values. The request id joins what the caller sees with the server's log and the audit records.

| code | SQLSTATE | HTTP | message | hint | entry |
|---|---|---|---|---|---|`;
