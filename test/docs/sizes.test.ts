import { join } from 'node:path';
import { LIMITS } from 'osl-compiler';
import { test } from 'tap';
import { MAX_TOKEN_BYTES } from '../../policy/tokens/token-fault.js';
import { settingsFrom } from '../../src/service/settings.js';
import { MAX_BUFFERED_BYTES } from '../../src/surfaces/pg/buffered-rows.js';
import { MAX_BOUND_BYTES, MAX_CURSORS } from '../../src/surfaces/pg/cursor.js';
import { BODY_LIMIT, HEAD_LIMIT } from '../../src/surfaces/rest/problem.js';
import { withDefaults } from '../../wire/options.js';
import { keptTable } from './kept-table.js';

const MIB = 1_048_576;
const KIB = 1_024;
const BEGIN = '<!-- sizes: OSL_WRITE_DOCS=1 node dist/test/docs/sizes.test.js -->';
const END = '<!-- end of sizes -->';

const wire = withDefaults({ onInternalError: () => undefined });
const { caps, load } = settingsFrom({}, '/');

const bytes = (value: number): string =>
  value % MIB === 0 ? `${count(value / MIB)} MiB` : `${count(value / KIB)} KiB`;
const count = (value: number): string => value.toLocaleString('en-US');

/** Bounds of a client, and their messages: each value is the code's own. */
const SIZES: readonly (readonly [what: string, most: string, beyond: string])[] = [
  ['characters (UTF-16 units) of a statement, on every surface', count(LIMITS.text), '54000, E0511'],
  [
    'a protocol message, such as a statement or the values of its parameters',
    bytes(wire.maxMessageBytes),
    '08P01, and the session ends',
  ],
  ['prepared statements of a session', count(wire.maxStatements), '53400'],
  ['their texts together', bytes(wire.maxStatementBytes), '53400'],
  ['portals of a session', count(wire.maxPortals), '53400'],
  ['their bound values together', bytes(wire.maxPortalBytes), '53400'],
  ['cursors of a session', count(MAX_CURSORS), '53400'],
  ['their bound values together', bytes(MAX_BOUND_BYTES), '53400'],
  [
    'rows that a portal or cursor holds for a client that does not read',
    bytes(MAX_BUFFERED_BYTES),
    '54000, if the query cannot pause',
  ],
  ['a token, which is the password', bytes(MAX_TOKEN_BYTES), 'E3001'],
  ['rows of a result (`OSL_MAX_ROWS`)', count(caps.rows), '54000; over REST `truncated`'],
  ['bytes of a result (`OSL_MAX_RESULT_MIB`)', bytes(caps.bytes), '54000; over REST `truncated`'],
  ['a row of a result (`OSL_MAX_ROW_MIB`)', bytes(load.answers.rowBytes), '54000, E0530'],
  ['body of a REST request', bytes(BODY_LIMIT), 'E4130'],
  ['headers of a REST request', bytes(HEAD_LIMIT), 'E0511'],
];

test('docs/bi.md has the sizes that the code has', (t) => {
  const page = join(process.cwd(), 'docs', 'bi.md');
  const rows = SIZES.map((cells) => `| ${cells.join(' | ')} |`);
  keptTable(t, page, [BEGIN, END], ['| what | at most | beyond it |', '| --- | --- | --- |', ...rows]);
  t.end();
});
