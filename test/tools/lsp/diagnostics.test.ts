import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Diagnostic } from 'vscode-languageserver-protocol';
import type { Diagnostic as Fault } from '../../../src/model/manifest/index.js';
import { ManifestProblems } from '../../../src/model/manifest/index.js';
import { loadModel, PolicyFault } from '../../../src/service/model.js';
import { edited, MANIFEST, POLICY } from '../../model/manifest/base.js';
import { brokenManifest, MANIFEST_CASES, POLICY_CASES } from '../../model/manifest/cases.js';
import { EXAMPLE, osl, temporary } from '../cli/support.js';
import { Editor } from './client.js';

t.setTimeout(180_000);

/** A diagnostic of the editor as `osl validate --json` has it. */
function asValidated({ range, code, message, data }: Diagnostic) {
  const { hint } = data as { readonly hint: string | null };
  const { start, end } = range;
  return {
    code,
    message: hint === null ? message : `${message}`.replace(`\nhint: ${hint}`, ''),
    hint,
    start: { line: start.line + 1, column: start.character + 1 },
    end: { line: end.line + 1, column: end.character + 1 },
  };
}

/** One of `osl validate`, as editors show it: an empty range is one character wide. */
function asShown({ range: { start, end }, code, message, hint }: Fault) {
  const empty = start.line === end.line && start.column === end.column;
  return {
    code,
    message,
    hint,
    start: { ...start },
    end: { line: end.line, column: end.column + (empty ? 1 : 0) },
  };
}

/** What `osl validate` finds, by the function that it calls. */
async function validated(manifestFile: string, policyFile: string, texts: ReadonlyMap<string, string>) {
  try {
    await loadModel(manifestFile, policyFile, null, async (file) => texts.get(file) ?? '');
    return [];
  } catch (error) {
    if (error instanceof PolicyFault) return policyFile === '' ? [] : error.cause.diagnostics.map(asShown);
    if (error instanceof ManifestProblems) return error.diagnostics.map(asShown);
    throw error;
  }
}

t.test('diagnostics of every broken manifest and policy are those of osl validate', async (t) => {
  const { editor } = await Editor.start(t);
  const dir = temporary();
  const manifests = MANIFEST_CASES.map((broken, i) => ({
    file: join(dir, `m${i}`, 'manifest.yaml'),
    text: brokenManifest(broken),
    name: broken.name,
  }));
  const policies = POLICY_CASES.map(({ name, from, to }, i) => {
    const own = join(dir, `p${i}`);
    mkdirSync(own);
    writeFileSync(join(own, 'manifest.yaml'), MANIFEST);
    return { file: join(own, 'policy.yaml'), text: edited(POLICY, from, to), name };
  });
  for (const { file, text } of [...manifests, ...policies]) await editor.open(file, text);
  let found = 0;
  for (const { file, text, name } of manifests) {
    const expected = await validated(
      file,
      '',
      new Map([
        [file, text],
        ['', POLICY],
      ]),
    );
    found += expected.length;
    t.strictSame((await editor.diagnostics(file)).map(asValidated), expected, name);
  }
  for (const { file, text, name } of policies) {
    const manifest = join(file, '..', 'manifest.yaml');
    const expected = await validated(
      manifest,
      file,
      new Map([
        [file, text],
        [manifest, MANIFEST],
      ]),
    );
    found += expected.length;
    t.strictSame((await editor.diagnostics(file)).map(asValidated), expected, name);
  }
  t.ok(found > 150, `${found} diagnostics`);
});

t.test('so they are of the command itself, with the same ranges', async (t) => {
  const { editor } = await Editor.start(t);
  const dir = temporary();
  const manifest = join(dir, 'manifest.yaml');
  const policy = join(dir, 'policy.yaml');
  writeFileSync(
    manifest,
    readFileSync(join(EXAMPLE, 'manifest.yaml'), 'utf8').replace(
      'path: { type: text }',
      'path: { type: txt }',
    ),
  );
  writeFileSync(policy, readFileSync(join(EXAMPLE, 'policy.yaml')));
  const run = await osl(['validate', '--json', '--manifest', manifest, '--policy', policy]);
  await editor.open(manifest, readFileSync(manifest, 'utf8'));
  const { diagnostics }: { diagnostics: readonly Fault[] } = JSON.parse(run.stdout);
  t.ok(diagnostics.length > 0);
  t.strictSame((await editor.diagnostics(manifest)).map(asValidated), diagnostics.map(asShown));
});

t.test(
  'what is open counts, not what is saved; each change is checked, and what is mended is unmarked',
  async (t) => {
    const { editor } = await Editor.start(t);
    const dir = temporary();
    const [manifest, policy] = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')];
    writeFileSync(manifest, MANIFEST);
    writeFileSync(policy, POLICY);
    await editor.open(policy, POLICY);
    t.strictSame(await editor.diagnostics(policy), []);
    await editor.change(policy, 'on: order', 'on: ordr');
    const [wrong] = await editor.diagnostics(policy);
    t.match(wrong, {
      source: 'osl',
      severity: 1,
      code: /^P\d+/,
      message: /ordr[\s\S]*hint: perhaps you meant `order`/,
    });
    await editor.open(manifest, MANIFEST);
    await editor.change(
      manifest,
      'lexicon:\n  turnover: { refers_to: revenue',
      'lexicon:\n  turnover: { refers_to: revenues',
    );
    t.match(await editor.diagnostics(manifest), [{ message: /revenues/ }]);
    await editor.change(manifest, 'revenues', 'revenue');
    t.strictSame(await editor.diagnostics(manifest), []);
    t.equal((await editor.diagnostics(policy, 1)).length, 1, 'the policy is told of again');
    await editor.change(policy, 'on: ordr', 'on: order');
    t.strictSame(await editor.diagnostics(policy), []);
  },
);

t.test('a hint with a fix is a code action that mends it', async (t) => {
  const { editor } = await Editor.start(t);
  const dir = temporary();
  const cases: readonly (readonly [from: string, to: string, edit: string])[] = [
    ['primary_key: [id]\n    entity_key', 'primry_key: [id]\n    entity_key', 'primary_key'],
    ['source: db.sales.tags', 'source: db.sales.tgs', 'db.sales.tags'],
    ['{ entity: order, expression', '{ entity: "ordr", expression', '"order"'],
    ['expression: sum(amount)', 'expression: sum(amont)', 'sum(amount)'],
  ];
  for (const [i, [from, to, edit]] of cases.entries()) {
    const file = join(dir, `${i}`, 'manifest.yaml');
    const text = edited(MANIFEST, from, to);
    await editor.open(file, text);
    const diagnostics = await editor.diagnostics(file);
    const [action, ...others] = await editor.actions(file, diagnostics);
    t.strictSame(others, []);
    const [change] = Object.values(action?.edit?.changes ?? {}).flat();
    t.equal(change?.newText, edit, to);
    if (change === undefined) continue;
    const { start, end } = change.range;
    const lines = text.split('\n');
    lines[start.line] =
      `${lines[start.line]?.slice(0, start.character)}${change.newText}${lines[end.line]?.slice(end.character)}`;
    t.equal(lines.join('\n').replaceAll('"order"', 'order'), MANIFEST, to);
  }
  writeFileSync(join(dir, 'manifest.yaml'), MANIFEST);
  const queries = [
    ['select amont from "order"', 'select amount from "order"'],
    ['select o.amont from "order" as o', 'select o.amount from "order" as o'],
    ['select p.amount from "order" as o', 'select o.amount from "order" as o'],
    ['select amount from osl.entities.ordr', 'select amount from osl.entities."order"'],
  ] as const;
  for (const [i, [text, mended]] of queries.entries()) {
    const file = join(dir, `${i}.osql`);
    await editor.open(file, text);
    const [action] = await editor.actions(file, await editor.diagnostics(file));
    const [change] = Object.values(action?.edit?.changes ?? {}).flat();
    const { start, end } = change?.range ?? { start: { character: 0 }, end: { character: 0 } };
    t.equal(`${text.slice(0, start.character)}${change?.newText}${text.slice(end.character)}`, mended);
  }
});
