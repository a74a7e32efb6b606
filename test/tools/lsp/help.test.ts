import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import t from 'tap';
import { EXAMPLE, temporary } from '../cli/support.js';
import { Editor } from './client.js';

t.setTimeout(90_000);

/** The demo's manifest and policy, in an editor. */
const dir = temporary();
cpSync(EXAMPLE, dir, { recursive: true });
const manifest = join(dir, 'manifest.yaml');
const policy = join(dir, 'policy.yaml');
const questions = join(dir, 'queries', 'people.osql');
const MANIFEST = readFileSync(manifest, 'utf8');
const POLICY = readFileSync(policy, 'utf8');

const { editor, said } = await Editor.start(t);

t.test('the demo is right', async (t) => {
  t.match(said.serverInfo, { name: 'osl' });
  await editor.open(manifest, MANIFEST);
  await editor.open(policy, POLICY);
  t.strictSame(await editor.diagnostics(manifest), []);
  t.strictSame(await editor.diagnostics(policy), []);
});

const inManifest = (text: string): string => `${MANIFEST}\n${text}`;
const inPolicy = (text: string): string => POLICY.replace(/^masks:/m, `  mine:\n${text}\nmasks:`);

t.test('completion of keys is what the schema has there, what is there already left out', async (t) => {
  const top = await editor.complete(manifest, inManifest('|'));
  t.ok(top.includes('rollups'), 'a key of the file');
  t.notOk(top.includes('entities'), 'but none that it has');
  const metric = await editor.complete(
    manifest,
    MANIFEST.replace(/^metrics:\n/m, 'metrics:\n  mine:\n    entity: package\n    |\n'),
  );
  t.ok(
    ['expression', 'format', 'filter'].every((key) => metric.includes(key)),
    metric.join(),
  );
  t.notOk(metric.includes('entity'));
  const flow = await editor.complete(
    manifest,
    MANIFEST.replace(/^metrics:\n/m, 'metrics:\n  mine: { entity: package, | }\n'),
  );
  t.ok(flow.includes('expression') && !flow.includes('entity'), flow.join());
  const format = await editor.complete(
    manifest,
    MANIFEST.replace(/^metrics:\n/m, 'metrics:\n  mine: { format: { kind: | } }\n'),
  );
  t.strictSame(format, ['number', 'percent', 'currency']);
  const grant = await editor.complete(policy, inPolicy('    grants:\n      - on: person\n        |'));
  t.ok(
    ['columns', 'rows', 'unmask', 'when'].every((key) => grant.includes(key)),
    grant.join(),
  );
  t.notOk(grant.includes('on'));
});

t.test('completion of names: entities, columns, roles, labels, tables, in their places', async (t) => {
  const at = (text: string): Promise<readonly string[]> => editor.complete(policy, inPolicy(text));
  t.ok((await at('    grants: [{ on: | }]')).includes('person'));
  t.strictSame((await at('    grants: [{ on: person, columns: [id, |] }]')).slice(0, 4), [
    'id',
    'name',
    'email',
    'url',
  ]);
  t.strictSame(
    (await at('    grants:\n      - on: person\n        columns:\n          - id\n          - |')).slice(
      0,
      4,
    ),
    ['id', 'name', 'email', 'url'],
  );
  t.strictSame(
    (await at('    grants:\n      - columns: [|]\n        on: person')).slice(0, 4),
    ['id', 'name', 'email', 'url'],
    'also before it',
  );
  t.ok((await at('    grants: [{ on: person, columns: [id], unmask: [|] }]')).includes('pii'));
  const roles = await editor.complete(
    policy,
    POLICY.replace(/^subjects:\n/m, 'subjects:\n  user:new: { ceiling: [|] }\n'),
  );
  t.ok(roles.includes('analyst'), roles.join());
  const source = await editor.complete(
    manifest,
    MANIFEST.replace(/^entities:\n/m, 'entities:\n  mine:\n    source: |\n'),
  );
  t.ok(
    source.some((name) => /^\w+\.supply\.person$/.test(name)),
    source.join(),
  );
  const columns = await editor.complete(
    manifest,
    MANIFEST.replace(
      /^entities:\n/m,
      'entities:\n  mine:\n    source: demo.supply.person\n    columns:\n      - |\n',
    ),
  );
  t.comment(columns.join());
  const refers = await editor.complete(
    manifest,
    MANIFEST.replace(/^lexicon:\n/m, 'lexicon:\n  mine: { refers_to: | }\n'),
  );
  t.ok(refers.includes('package') && refers.includes('person.email'), refers.slice(0, 9).join());
  const kind = await editor.complete(
    manifest,
    MANIFEST.replace(/^relationships:\n/m, 'relationships:\n  mine:\n    from: |\n'),
  );
  t.comment(kind.slice(0, 3).join());
});

t.test('hover: what a key means, and over an object who may see it, by which grant', async (t) => {
  t.match(await editor.hover(policy, POLICY.replace('masks:', 'ma|sks:')), /Mask of each sensitivity label/);
  t.match(
    await editor.hover(policy, POLICY.replace('unmask: [person] }', 'un|mask: [person] }')),
    /Sensitivity labels that are shown unmasked/,
  );
  const email = await editor.hover(
    manifest,
    MANIFEST.replace(/(\nentities:[\s\S]*?\n {2}person:[\s\S]*?columns:[\s\S]*?)email/, '$1em|ail'),
  );
  t.match(email, /person\.email/);
  t.match(email, /Label `pii`, mask `redact`/);
  t.match(email, /\*\*in the clear\*\*: .*`user:auditor`.*`roles\.auditor\.grants\[\d\]`.*unmask pii/);
  t.match(email, /\*\*masked\*\*: .*`user:analyst`.*`roles\.analyst\.grants\[\d\]`/);
  t.match(email, /not at all: \d+ of \d+ subjects/);
  const entity = await editor.hover(policy, POLICY.replace(/on: person/, 'on: per|son'));
  t.match(entity, /entity \*\*person\*\*[\s\S]*Who may see it/);
});

t.test('definition: from the policy and from questions to the manifest', async (t) => {
  const lineAt = (at: { uri: string; range: { start: { line: number } } } | null): string =>
    at === null ? '' : (readFileSync(fileURLToPath(at.uri), 'utf8').split('\n')[at.range.start.line] ?? '');
  const person = await editor.definition(policy, POLICY.replace(/on: person/, 'on: per|son'));
  t.equal(person?.uri, pathToFileURL(manifest).href);
  t.equal(lineAt(person), '  person:');
  const role = await editor.definition(policy, POLICY.replace(/ceiling: \[analyst/, 'ceiling: [ana|lyst'));
  t.match(lineAt(role), /^ {2}analyst:/);
  await editor.open(questions, '');
  const column = await editor.definition(questions, 'select p.em|ail from osl.entities.person p');
  t.match(lineAt(column), /email/);
});

t.test('symbols: the sections of a file and what they name', async (t) => {
  await editor.complete(manifest, `${MANIFEST}|`);
  const symbols = await editor.symbols(manifest);
  const entities = symbols.find(({ name }) => name === 'entities');
  t.ok(entities?.children?.some(({ name }) => name === 'person'));
  t.ok(symbols.some(({ name }) => name === 'connectors'));
  const [first, second] = entities?.children ?? [];
  t.ok((first?.range.end.line ?? 0) < (second?.range.start.line ?? 0), 'ranges do not overlap');
});

t.test('questions: completion after FROM, after a dot, in RETRIEVE; functions and metrics', async (t) => {
  const at = (text: string): Promise<readonly string[]> => editor.complete(questions, text);
  const from = await at('select * from |');
  t.ok(from.includes('person') && from.includes('RETRIEVE'), from.join());
  t.notOk(from.includes('readme'), 'a facet is not an entity');
  t.ok((await at('select * from osl.entities.|')).includes('package'));
  t.strictSame((await at('select p.| from person p')).slice(0, 4), ['id', 'name', 'email', 'url']);
  t.ok(
    (await at("select r.| from RETRIEVE(facet => 'readme', query => 'x', top_k => 3) r")).includes('score'),
  );
  t.ok((await at("select 1 from RETRIEVE(facet => '|")).includes('readme'));
  const open = await at('select | from person; select 1');
  t.ok(
    ['email', 'lower', 'MEASURE', 'case'].every((word) => open.includes(word)),
    open.slice(0, 20).join(),
  );
  t.notOk(open.includes('license'), 'no column of what is not read');
  t.ok((await at('select measure(|) from package')).includes('install_bytes'));
});

t.test('questions: faults as the compiler has them, each of its own statement, with a fix', async (t) => {
  const text =
    "select name from person;\n\n-- a comment; it ends nothing\nselect nme from person;\nselect 'a;b' from persn;\nselect 1 from;\nselect 2";
  await editor.complete(questions, `${text}|`);
  const faults = await editor.diagnostics(questions);
  t.match(faults, [
    {
      code: 'E0512',
      message: /`nme`[\s\S]*hint: perhaps you meant `name`/,
      range: { start: { line: 3, character: 7 }, end: { line: 3, character: 10 } },
    },
    { code: 'E0512', message: /persn/, range: { start: { line: 4, character: 18 } } },
    { code: 'E0511', range: { start: { line: 5 } } },
  ]);
  t.equal(faults.length, 3);
  const [fix] = await editor.actions(questions, faults);
  t.match(fix, {
    title: 'Change to `name`',
    edit: { changes: { [pathToFileURL(questions).href]: [{ newText: 'name' }] } },
  });
});

t.test('questions: hover tells the type, who sees it, and what a function takes', async (t) => {
  t.match(
    await editor.hover(questions, 'select p.em|ail from person p'),
    /\*\*person\.email\*\* text[\s\S]*in the clear/,
  );
  t.match(await editor.hover(questions, 'select low|er(name) from person'), /\(text\) → text/);
  t.match(await editor.hover(questions, 'select 1 from per|son'), /entity \*\*person\*\*/);
});

t.test('as a subject, questions are checked as that subject asks', async (t) => {
  const { editor: counsel } = await Editor.start(
    t,
    '--subject',
    'user:counsel',
    '--manifest',
    manifest,
    '--policy',
    policy,
  );
  const file = join(temporary(), 'elsewhere.osql');
  await counsel.open(file, 'select name from person');
  t.match(await counsel.diagnostics(file), [{ code: 'E0512', message: /person/ }]);
});
