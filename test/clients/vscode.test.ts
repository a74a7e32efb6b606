import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { crc32, inflateRawSync } from 'node:zlib';
import t from 'tap';
import { pack } from '../../clients/vscode/pack.js';
import { shell, temporary } from '../tools/cli/support.js';

/** The files of a zip, by its directory, each held against its own checksum. */
function unzipped(bytes: Buffer): ReadonlyMap<string, Buffer> {
  const end = bytes.lastIndexOf(Buffer.from('PK\u0005\u0006'));
  const files = new Map<string, Buffer>();
  let at = bytes.readUInt32LE(end + 16);
  for (let n = 0; n < bytes.readUInt16LE(end + 10); n++) {
    const [sum, packed, size] = [16, 20, 24].map((field) => bytes.readUInt32LE(at + field));
    const nameLength = bytes.readUInt16LE(at + 28);
    const local = bytes.readUInt32LE(at + 42);
    const name = bytes.toString('utf8', at + 46, at + 46 + nameLength);
    const from = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const file = inflateRawSync(bytes.subarray(from, from + (packed ?? 0)));
    if (file.length !== size || crc32(file) !== sum) throw new Error(`${name} is damaged`);
    files.set(name, file);
    at += 46 + nameLength;
  }
  return files;
}

const archive = await pack(temporary());
const files = unzipped(readFileSync(archive));
const text = (name: string): string => files.get(name)?.toString('utf8') ?? '';

t.test('the archive is one that others open, and the same each time', async (t) => {
  if ((await shell('command -v unzip')).code === 0)
    t.match(execFileSync('unzip', ['-t', archive], { encoding: 'utf8' }), /No errors detected/);
  t.ok(readFileSync(archive).equals(readFileSync(await pack(temporary()))));
  t.ok(readFileSync(archive).length < 500_000, `${readFileSync(archive).length} bytes`);
});

t.test('its manifest names what is in it, and what the gateway is', async (t) => {
  const extension = JSON.parse(text('extension/package.json'));
  const own = JSON.parse(readFileSync('package.json', 'utf8'));
  t.equal(extension.version, own.version);
  t.equal(extension.license, own.license);
  const named: string[] = [
    extension.main,
    ...extension.contributes.languages.map((language: { configuration: string }) => language.configuration),
    ...extension.contributes.grammars.map((grammar: { path: string }) => grammar.path),
  ];
  for (const file of named) t.ok(files.has(`extension/${file.replace('./', '')}`), file);
  const manifest = text('extension.vsixmanifest');
  t.match(
    manifest,
    `Id="${extension.name}" Version="${extension.version}" Publisher="${extension.publisher}"`,
  );
  for (const [, path = ''] of manifest.matchAll(/ Path="([^"]+)"/g)) t.ok(files.has(path), path);
  const types = text('[Content_Types].xml');
  for (const name of files.keys())
    if (name !== '[Content_Types].xml') t.match(types, `Extension="${/\.\w+$/.exec(name)?.[0]}"`, name);
  for (const event of extension.activationEvents) t.match(event, /^(onLanguage:osql|workspaceContains:)/);
  t.equal(extension.capabilities.untrustedWorkspaces.supported, false);
});

t.test('the extension is one file that needs VS Code and Node, and nothing else', async (t) => {
  const code = text('extension/extension.cjs');
  const needed = new Set(
    [...code.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name = '']) => name.replace('node:', '')),
  );
  t.ok(needed.has('vscode'));
  needed.delete('vscode');
  for (const name of needed) t.ok(builtinModules.includes(name), name);
  t.match(text('extension/LICENCES.txt'), /^[\s\S]*vscode-languageclient [\d.]+ \(MIT\)/);
});

interface Rule {
  readonly name?: string;
  readonly match?: string;
  readonly begin?: string;
  readonly end?: string;
  readonly include?: string;
  readonly patterns?: readonly Rule[];
}

t.test('the grammar refers to what it has, and colours what it should', async (t) => {
  const grammar = JSON.parse(text('extension/osql.tmLanguage.json'));
  const groups: Readonly<Record<string, Rule>> = grammar.repository;
  const rules: Rule[] = [];
  const visit = (rule: Rule): void => {
    if (rule.include !== undefined) t.ok(rule.include.slice(1) in groups, rule.include);
    rules.push(rule);
    for (const inner of rule.patterns ?? []) visit(inner);
  };
  for (const rule of [...grammar.patterns, ...Object.values(groups)]) visit(rule);
  const regexp = (source: string): RegExp =>
    new RegExp(source.replace(/^\(\?i\)/, ''), source.startsWith('(?i)') ? 'i' : '');
  for (const { match, begin, end } of rules)
    for (const source of [match, begin, end]) if (source !== undefined) t.ok(regexp(source), source);
  const scopes = (word: string): readonly string[] =>
    rules.flatMap(({ name, match }) =>
      name !== undefined && match !== undefined && regexp(match).test(word) ? [name] : [],
    );
  t.ok(scopes('SELECT').includes('keyword.control.osql'));
  t.ok(scopes("RETRIEVE(facet => 'x')").includes('support.function.form.osql'));
  t.ok(scopes('top_k => 3').includes('variable.parameter.osql'));
  t.notOk(scopes('selected').includes('keyword.control.osql'));
});
