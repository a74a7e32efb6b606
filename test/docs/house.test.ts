import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'tap';
import { ROOT } from '../tools/cli/support.js';
import { circlesOf, filesOf, importsOf, overridesOf, readHouse, readRooms, roomOfPart } from './house.js';

const rooms = readRooms();
const house = readHouse();
const imports = importsOf(house);
const BIOME_BIN = join(ROOT, 'node_modules', '.bin', 'biome');
const BIOME = join(ROOT, 'biome.house.json');

function mayImport(from: string, to: string): boolean {
  return house.allowed.get(from)?.includes(to) === true;
}

test('at most 16 rooms with 55 arrows, each from a room to one above it in the table, so that there is no circle', (t) => {
  const arrows = [...rooms.allowed.values()].flat();
  t.ok(rooms.rooms.length <= 16 && rooms.rooms.length > 10, `${rooms.rooms.length} rooms`);
  t.ok(arrows.length <= 55 && arrows.length > 30, `${arrows.length} arrows`);
  for (const table of [rooms, house])
    for (const [i, room] of table.rooms.entries()) {
      const above = table.rooms.slice(0, i);
      t.strictSame(
        table.allowed.get(room)?.filter((other) => !above.includes(other)),
        [],
        room,
      );
    }
  t.end();
});

test('each arrow of the rooms is one of an import, and one of their parts', (t) => {
  const arrow = (from: string, to: string) => `${roomOfPart(from, rooms)} → ${roomOfPart(to, rooms)}`;
  const between = (arrows: readonly string[]) =>
    [...new Set(arrows)].filter((a) => a.split(' → ')[0] !== a.split(' → ')[1]).toSorted();
  const expected = between([...rooms.allowed].flatMap(([from, to]) => to.map((other) => arrow(from, other))));
  const ofParts = [...house.allowed].flatMap(([from, to]) => to.map((other) => arrow(from, other)));
  t.strictSame(between(ofParts), expected);
  t.strictSame(between(imports.map(({ from, to }) => arrow(from, to))), expected);
  t.end();
});

test('no folder of a room has more than 40 files', (t) => {
  const files = [...filesOf().keys()].filter((file) => !file.startsWith('bench/'));
  const full = [...new Set(files.map((file) => dirname(file)))].filter(
    (folder) => files.filter((file) => dirname(file) === folder).length > 40,
  );
  t.ok(files.length > 1_000);
  t.strictSame(full, []);
  t.end();
});

test('every import of the sources goes along an arrow of the table', (t) => {
  t.strictSame(
    imports.filter(({ from, to }) => !mayImport(from, to)),
    [],
  );
  t.end();
});

test('biome refuses what the table does not allow', (t) => {
  // One line a room: written here, and not formatted.
  const lines = overridesOf(house).map((override) => JSON.stringify(override));
  const text = `{"root":false,"overrides":[\n${lines.join(',\n')}\n]}\n`;
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(BIOME, text);
  t.equal(readFileSync(BIOME, 'utf8'), text, 'OSL_WRITE_DOCS=1 node dist/test/docs/house.test.js writes it');
  t.end();
});

test('at every depth of every room biome refuses an import of each room that is not allowed, and no other', (t) => {
  const dir = t.testdir();
  for (const file of ['biome.json', 'biome.house.json']) cpSync(join(ROOT, file), join(dir, file));
  const expected: string[] = [];
  for (const room of house.rooms) {
    for (const inner of ['', 'aa/', 'aa/bb/']) {
      const file = `${room}${inner}probe.ts`;
      const others = house.rooms.filter((other) => other !== room);
      const ways = [
        ...others.map((other) => specifierOf(file, other)),
        inner === '' ? './own.js' : '../own.js',
      ];
      mkdirSync(dirname(join(dir, file)), { recursive: true });
      writeFileSync(join(dir, file), ways.map((way) => `import type {} from '${way}';\n`).join(''));
      expected.push(
        ...others.flatMap((other, i) => (mayImport(room, other) ? [] : [`${file}:${i + 1} ${other}`])),
      );
    }
  }
  const args = ['lint', '--only=style/noRestrictedImports', '--reporter=github', '--max-diagnostics=none'];
  const { stdout } = spawnSync(BIOME_BIN, args, { cwd: dir, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  const refused = new Set(
    [...stdout.matchAll(/file=([^,]+),line=(\d+)/g)].map(
      ([, file, line]) => `${relative(dir, file ?? '')}:${line}`,
    ),
  );
  const missed = expected.filter((place) => !refused.delete(place.split(' ')[0] ?? ''));
  t.ok(expected.length > 500, `${expected.length} arrows`);
  t.strictSame(missed, []);
  t.strictSame([...refused], []);
  t.end();
});

function specifierOf(file: string, room: string): string {
  if (room === 'compiler/') return 'osl-compiler';
  if (room === 'console/') return 'osl-console/index';
  const path = relative(dirname(file), `${room}index.js`);
  return path.startsWith('.') ? path : `./${path}`;
}

/** Circles of files that are the recursion of a grammar: expressions hold queries, and queries expressions. */
const RECURSIONS = [/^compiler\/src\/bind\//, /^compiler\/src\/emit\//];

test('no circle of files but the recursion of a grammar, types included', (t) => {
  const circles = circlesOf(filesOf()).filter(
    (files) => !RECURSIONS.some((room) => files.every((file) => room.test(file))),
  );
  t.strictSame(circles, []);
  const made = circlesOf(
    new Map([
      ['a', ['b']],
      ['b', ['c']],
      ['c', ['b']],
      ['d', ['a']],
    ]),
  );
  t.strictSame(made, [['b', 'c']], 'one that is there is found');
  t.end();
});

test('what a test tries by chance comes from the seed of test/support/fast-check.ts', (t) => {
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  t.strictSame(
    files.filter(
      (file) =>
        readFileSync(join(ROOT, 'test', file), 'utf8').match(/^import .* from 'fast-check';$/m) !== null,
    ),
    [join('support', 'fast-check.ts')],
  );
  t.end();
});

/** What emits `error`, which ends the process where nobody listens. */
const MAKERS =
  /\bnew (?:Worker|Socket|TLSSocket)\(|\b(?:createServer|createTlsServer|createConnection|connectTls|connectSocket|spawn|execFile)\(|\bplainRequest\b|\bcluster\.fork\(/;

/** Where it is made, and who hears its errors; each of these was read with the question what becomes of one. */
const HEARERS: Readonly<Record<string, string>> = {
  'audit/lock.ts': "on('error'",
  'audit/search/sealer.ts': "on('error'",
  'audit/verifying/judges.ts': "on('error'",
  'src/base/threads/thread.ts': "on('error'",
  'src/engine/postgres/connect.ts': "on('error'",
  'src/engine/postgres/slab-socket.ts': 'slabSocket', // the client that it is given to
  'src/service/connector-url.ts': '(failure, stdout)',
  'src/service/lineage/delivery/send.ts': "on('error'",
  'src/surfaces/http/listener.ts': "on('error'",
  'cli/commands/login.ts': "once('error'",
  'cli/commands/psql.ts': "once('error'",
  'cli/login/provider.ts': "('error', reject)",
  'cli/proxy/connection.ts': "on('error'",
  'cli/proxy/listen.ts': "on('error'",
  'cli/serve/ports.ts': "on('error'",
  'cli/workers/slot.ts': "on('error'",
  'cli/workers/supervisor.ts': "on('error'",
  'cli/lsp/checking-thread.ts': "('error', ended)",
  'cli/lsp/serve.ts': 'createConnection', // of an editor, over standard input
  'wire/handshake.ts': "('error', fail)",
  'wire/server.ts': "on('error'",
};

test('what emits errors is made where somebody hears them', (t) => {
  const made = [...filesOf().keys()]
    .filter((file) => /^(src|audit|cli|interchange|policy|wire)\//.test(file))
    .map((file) => ({ file, text: readFileSync(join(ROOT, file), 'utf8') }))
    .filter(({ text }) => MAKERS.test(text.replace(/^import[\s\S]*?;$/gm, '')));
  for (const { file, text } of made) {
    const hears = HEARERS[file];
    if (hears === undefined) t.fail(`${file} makes something that emits errors, and is not in the table`);
    else t.ok(text.includes(hears), file);
  }
  t.strictSame(
    Object.keys(HEARERS).filter((file) => !made.some((one) => one.file === file)),
    [],
    'and nothing is in the table that is not there',
  );
  t.end();
});

test('what the product imports stands in `dependencies`, where `npm audit --omit=dev` sees it', (t) => {
  const manifests = ['.', 'compiler', 'console', 'release/bundled'].map(
    (folder) => JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest, // our own files
  );
  const listed = new Set(
    manifests.flatMap(({ dependencies, peerDependencies }) =>
      Object.keys({ ...dependencies, ...peerDependencies }),
    ),
  );
  const imported = [
    'src',
    'audit',
    'cli',
    'interchange',
    'policy',
    'wire',
    'compiler/src',
    'console/src',
    'clients',
  ].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file) && !BUILDS.test(file))
      .flatMap((file) => {
        const text = readFileSync(join(ROOT, folder, file), 'utf8');
        return [...text.matchAll(OF_PACKAGE)].map(([, from = '', called]) => packageOf(called ?? from));
      }),
  );
  t.ok(imported.length > 150);
  t.strictSame([...new Set(imported)].filter((name) => !listed.has(name)).sort(), []);
  t.end();
});

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Files that build something and are in nothing that is published. */
const BUILDS = /(^|\/)(make-|pack\.ts)|\.d\.ts$/;
/** An import or export of values from a package, or a call of `import`. Node's own and ours are left out. */
const OF_PACKAGE =
  /^(?:import|export) (?!type )[^;']* from '((?!node:|\.|osl-|vscode')[^']+)';$|\bimport\('((?!node:|\.|osl-)[^']+)'\)/gm;

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
