import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EVALUATION_FAULTS, hintOn, queryError, SURFACE_PHRASES, type Surface } from 'osl-compiler';
import { test } from 'tap';
import { program } from '../../cli/program.js';
import { formatProblem } from '../../cli/reply.js';
import { SETTINGS } from '../../src/service/settings/table.js';
import { wireError } from '../../src/surfaces/pg/session-requests.js';
import { ROUTES } from '../../src/surfaces/rest/openapi/document.js';
import { ROOT } from '../tools/cli/support.js';
import { errorLines } from './error-table.js';

/** Words of one surface. `osl index` and variables are for the operator, who has them wherever a caller reads of it. */
const OF = {
  http: /\b(GET|POST|PUT|DELETE) \/|\?\w+=|If-Match|Authorization|`(base_version|diagnostics|request_id)`|\bJSON\b/,
  flags: /(^|\s)--[a-z]|`osl (?!index)\w+/,
} as const;
const FOREIGN: Readonly<Record<Surface, readonly RegExp[]>> = {
  rest: [OF.flags],
  wire: [OF.http, OF.flags],
  cli: [OF.http],
};
const SURFACES = ['rest', 'wire', 'cli'] as const;

test('no hint of the catalogue, and no way in that a hint names, speaks the language of another surface', async (t) => {
  const hints = [
    ...errorLines().map(({ name, hint }) => [name, hint] as const),
    ...Object.entries(SURFACE_PHRASES).map(([name, way]) => [name, way.rest] as const),
  ];
  for (const surface of SURFACES) {
    const wrong = hints
      .map(([name, hint]) => `${name}: ${hintOn(surface, hint)}`)
      .filter((text) => FOREIGN[surface].some((words) => words.test(text)));
    t.strictSame(wrong, [], surface);
  }
});

test('every variable, command and path that a hint of the catalogue names is there', async (t) => {
  const hints = [
    ...errorLines().map((l) => l.hint),
    ...Object.values(SURFACE_PHRASES).flatMap((way) => Object.values(way)),
    ...[...EVALUATION_FAULTS.values()].map(([, hint]) => hint ?? ''),
  ].map(String);
  const named = (pattern: RegExp): readonly string[] => [
    ...new Set(hints.flatMap((hint) => [...hint.matchAll(pattern)].map(([, name = '']) => name))),
  ];
  const commands = new Set((await program()).commands.map((c) => c.name()));
  t.strictSame(
    named(/\b(OSL_[A-Z_]+)\b/g).filter((name) => !(name in SETTINGS)),
    [],
  );
  t.strictSame(
    named(/`osl (\w+)/g).filter((name) => !commands.has(name)),
    [],
  );
  t.strictSame(
    named(/\b(?:GET|POST|PUT|DELETE) (\/[\w/]+)/g).filter((path) => !ROUTES.has(path)),
    [],
  );
  t.ok(named(/\b(OSL_[A-Z_]+)\b/g).length >= 3, 'hints name variables');
  t.ok(named(/`osl (\w+)/g).length >= 4, 'and commands');
});

/** A hint by its name, or as an argument of the binder's two ways to refuse a construct. */
const RAISED =
  /\bhints?\b[^\n;]*(?:=>|:|=)\s*\n?\s*(['"`][^\n]*)|ctx\.(?:unsupported|mismatch)\(((?:[^;'"`]|'[^'\n]*'|"[^"\n]*"|`[^`]*`)*)/g;

test('what raises an error names a way in by the list of them, and by no text of its own', async (t) => {
  const files = [
    'compiler/src',
    'policy',
    'src/ask',
    'src/model/authoring',
    'src/surfaces/rest',
    'src/surfaces/pg',
    'src/surfaces/catalog',
  ].flatMap((dir) =>
    readdirSync(join(ROOT, dir), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.includes('openapi') && name !== 'surface-hints.ts')
      .map((name) => join(dir, name)),
  );
  t.ok(files.length > 200, `${files.length} files`);
  const found = files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(RAISED)]
      .map(([, named, given]) => named ?? given ?? '')
      .filter((text) => OF.http.test(text.replace(/\$\{[^}]*\}/g, '')) || OF.flags.test(text))
      .map((text) => `${file}: ${text}`),
  );
  t.strictSame(found, []);
});

test('the same refusal on the wire and on a terminal', async (t) => {
  const error = queryError('missingToken', {});
  t.match(wireError(error, 'id', ''), { hint: 'send the token as the password' });
  const problem = {
    code: error.code,
    detail: error.message,
    hint: error.hint,
    request_id: null,
    position: null,
  };
  t.match(formatProblem(problem, ''), 'hint: name the caller with --subject or --token');
});
