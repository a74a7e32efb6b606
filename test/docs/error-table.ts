import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS, type ErrorName, EVALUATION_FAULTS, GROUPS_ONLY } from 'osl-compiler';
import { EXPLANATIONS } from '../../cli/error-explanations.js';
import { ROOT } from '../tools/cli/support.js';

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

/** Parameters that say their own names, but for those in `known`. */
function placeholders(known: Readonly<Record<string, unknown>>): object {
  return new Proxy(known, {
    get: (_, key) => (key === Symbol.toPrimitive ? undefined : (known[String(key)] ?? `‹${String(key)}›`)),
  });
}

function errorLine(name: ErrorName): ErrorLine {
  const entry = ERRORS[name];
  const shown = placeholders({ requested: placeholders({}) });
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
  const reasons = Object.values(GROUPS_ONLY).map((reason) => {
    const { detail, hint } = reason('‹object›', '‹name›');
    return row([detail, hint]);
  });
  const explained = [...EXPLANATIONS].map(([code, { cause, remedy, page }]) => {
    const place = page.replace(/^errors\.md/, '');
    return row([code, cause, remedy, `[${page.replace(/\.md.*/, '')}](${place})`]);
  });
  const tables = [
    [HEAD, ...rows],
    [CAUSES, ...explained],
    [EVALUATIONS, ...faults],
    [AGGREGATES, ...reasons],
    [SURFACES, `${protocolStates().join(', ')}.`],
  ];
  return `${tables.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((c) => c.replaceAll('|', '\\|')).join(' | ')} |`;
}

/** Folders of what says errors in the words of the Postgres protocol alone. */
const PROTOCOL = ['wire', 'src/surfaces/pg'];
const SAID = /\b(?:error|fatal)\(\s*'([0-9A-Z]{5})',/g;

/** Every SQLSTATE that the protocol says by itself, as they stand in the sources. */
function protocolStates(): readonly string[] {
  const files = PROTOCOL.flatMap((dir) => readdirSync(join(ROOT, dir)).map((name) => join(ROOT, dir, name)));
  const texts = files.filter((name) => name.endsWith('.ts')).map((name) => readFileSync(name, 'utf8'));
  return [
    ...new Set(texts.flatMap((text) => [...text.matchAll(SAID)].map(([, state = '']) => state))),
  ].sort();
}

const SURFACES = `## What differs by surface

Code, SQLSTATE and message are the same wherever an entry of the first table occurs. The differences:

| surface | code | SQLSTATE | status | hint |
|---|---|---|---|---|
| REST | \`code\` of the problem | \`sqlstate\` | as in the table | in the words of HTTP |
| \`/mcp\`, \`osl mcp\` | as REST, in \`problem\` of a result with \`isError\` | as REST | 200 of the message, with REST's in \`status\`; no token is 401 instead of 403 | as REST |
| \`POST /oauth/token\` | as REST, beside \`error\` and \`error_description\` of OAuth | as REST | 401 and 403 become 400 | as REST |
| wire | begins DETAIL: \`E0512, request <id>\` | as in the table; at a login it is FATAL | | in the words of a session |
| CLI | as REST, on standard error | | an [exit status](cli-output.md) | in the words of the command line |

On the Postgres port, a client may also send several queries at a time, EXPLAIN, and an empty statement, which other surfaces refuse. It also has errors of its own. Errors of the protocol have an SQLSTATE but no code, and use Postgres' own wording: a portal that does not exist, an unknown session parameter. The same applies to errors of statements that read the catalog (\`pg_catalog\`, \`information_schema\`) or no table at all (\`select 1/0\`), which are answered by a Postgres without data. The audit log has their SQLSTATE instead of a code. The SQLSTATEs of the protocol are`;

const CAUSES = `## Causes, and what to do

| code | cause | what to do | page |
|---|---|---|---|`;

const EVALUATIONS = `## Values that cannot be computed with

An error in a value is the caller's, and 400. A fault that can be detected in a literal or parameter before the query runs is E0511, with Postgres' SQLSTATE for the value (22P02, 22003, 22007, 22008; 2201X for a negative OFFSET): a literal that does not have the form of its type, or a value outside its range. A fault that appears only when the database computes is E0529, with the SQLSTATE of the database and this message and hint:

| SQLSTATE | message | hint |
|---|---|---|`;

const AGGREGATES = `## Rows that are for aggregates only

For rows that a grant allows in groups only ([\`min_group_size\`](policy.md#roles)), E2103 states which part of the query would show single rows, and what to write instead. If the grant lists metrics, the hint names them.

| detail | hint |
|---|---|`;

const HEAD = `# Errors

Every refusal has a code from this table; [differences between surfaces](#what-differs-by-surface) are listed below. Codes are stable, and a retired code is not used again. Several conditions may share a code if the contract gives them one. \`osl errors CODE\` explains a code and prints its rows.

For a failure inside a database, the caller gets its SQLSTATE but not its message, which could contain values. The request ID connects what the caller sees with the server's log and the audit records.

| code | SQLSTATE | HTTP | message | hint | entry |
|---|---|---|---|---|---|`;
