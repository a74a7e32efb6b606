import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import t, { test } from 'tap';
import { ROOT } from '../tools/cli/support.js';
import { circlesOf, filesOf, importsOf, overridesOf, readHouse, readRooms, roomOfPart } from './house.js';

t.setTimeout(120_000);
const files = filesOf();
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

test('each room is a project of TypeScript that refers to the rooms it may import, and to no other', (t) => {
  for (const room of rooms.rooms) {
    const { references = [] } = projectOf(room);
    const named = references.map(({ path }) => `${join(room, path)}/`);
    t.strictSame(named.toSorted(), (rooms.allowed.get(room) ?? []).toSorted(), room);
  }
  const whole = (projectOf('.').references ?? []).map(({ path }) => `${join(path)}/`);
  t.strictSame(
    rooms.rooms.filter((room) => !whole.includes(room)),
    [],
    'and the project at the root refers to all',
  );
  t.end();
});

/**
 * Arrows that tsc does not refuse, since a room that may be imported imports the other: what a project refers to by way
 * of another it may read. biome refuses them.
 */
const REACHED_BY_ANOTHER = ['audit/ → compiler/', 'interchange/ → src/engine/', 'src/content/ → policy/'];

test('`tsc -b` refuses an import of each room that is not allowed', (t) => {
  const dir = t.testdir();
  const probes = rooms.rooms.map((room) => {
    const probe = join(dir, room);
    mkdirSync(probe, { recursive: true });
    for (const other of rooms.rooms.filter((name) => name !== room)) {
      const text = `export type * from '${other === 'compiler/' ? 'osl-compiler/types' : relative(probe, leafOf(other))}';\n`;
      writeFileSync(join(probe, `imports-${other.replaceAll('/', '-')}.ts`), text);
    }
    const references =
      projectOf(room).references?.map(({ path }) => ({ path: join(ROOT, room, path) })) ?? [];
    const compilerOptions = {
      types: [],
      rootDir: ROOT,
      outDir: join(dir, 'out'),
      tsBuildInfoFile: join(probe, 'info'),
    };
    const config = {
      extends: join(ROOT, 'tsconfig.base.json'),
      compilerOptions,
      files: readdirSync(probe),
      references,
    };
    writeFileSync(join(probe, 'tsconfig.json'), JSON.stringify(config));
    return { path: probe };
  });
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ files: [], references: probes }));
  const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
  const { stdout } = spawnSync(tsc, ['-b', dir, '--pretty', 'false'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const errors = stdout.matchAll(/^(\S+)\/imports-(\S+)\.ts\(\d+,\d+\): error TS6307: /gm);
  const refused = [...errors].map(([, at = '', other]) => {
    const from = `${relative(dir, join(ROOT, at))}/`;
    return `${from} → ${rooms.rooms.find((room) => room.replaceAll('/', '-') === other)}`;
  });
  const expected = rooms.rooms.flatMap((from) =>
    rooms.rooms
      .filter((to) => to !== from && rooms.allowed.get(from)?.includes(to) !== true)
      .map((to) => `${from} → ${to}`)
      .filter((arrow) => !REACHED_BY_ANOTHER.includes(arrow)),
  );
  t.ok(expected.length > 140, `${expected.length} arrows`);
  t.strictSame(refused.toSorted(), expected.toSorted(), stdout.slice(0, 2_000));
  t.end();
});

interface Project {
  readonly references?: readonly { readonly path: string }[];
}

function projectOf(room: string): Project {
  return JSON.parse(readFileSync(join(ROOT, room, 'tsconfig.json'), 'utf8')) as Project; // our own file
}

/** The file of a room that imports the fewest of ours. */
function leafOf(room: string): string {
  const [leaf] = [...files]
    .filter(([file]) => file.startsWith(room) && file.endsWith('.ts'))
    .toSorted(([, a], [, b]) => a.length - b.length);
  return join(ROOT, (leaf?.[0] ?? room).replace(/\.ts$/, '.js'));
}

test('no folder of a room has more than 40 files', (t) => {
  const product = [...files.keys()].filter((file) => !file.startsWith('bench/'));
  const full = [...new Set(product.map((file) => dirname(file)))].filter(
    (folder) => product.filter((file) => dirname(file) === folder).length > 40,
  );
  t.ok(product.length > 1_000);
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
  const circles = circlesOf(files).filter(
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

/** Sources of `error` events, which end the process where nobody listens. */
const MAKERS =
  /\bnew (?:Worker|Socket|TLSSocket)\(|\b(?:createServer|createTlsServer|createConnection|connectTls|connectSocket|spawn|execFile)\(|\bplainRequest\b|\bcluster\.fork\(/;

/** Where it is made, and who hears its errors; each of these was read with the question what becomes of one. */
const HEARERS: Readonly<Record<string, string>> = {
  'audit/lock.ts': "on('error'",
  'audit/search/index-files.ts': "on('error'",
  'audit/verifying/verify-segment.ts': "on('error'",
  'src/base/threads/thread.ts': "on('error'",
  'src/engine/postgres/connect.ts': "on('error'", // that of the slab socket: the client that it is given to
  'src/service/connector-url.ts': '(failure, stdout)',
  'src/service/lineage/delivery/send.ts': "on('error'",
  'src/surfaces/http/listener.ts': "on('error'",
  'cli/commands/login.ts': "once('error'",
  'cli/commands/psql.ts': "once('error'",
  'cli/login/provider.ts': "('error', reject)",
  'cli/proxy/connection.ts': "on('error'",
  'cli/serve/ports.ts': "on('error'",
  'cli/workers/slot.ts': "on('error'",
  'cli/workers/supervisor.ts': "on('error'",
  'cli/lsp/projects.ts': "('error', ended)",
  'cli/lsp/serve.ts': 'createConnection', // of an editor, over standard input
  'wire/handshake.ts': "('error', fail)",
  'wire/server.ts': "on('error'",
};

test('what emits errors is made where somebody hears them', (t) => {
  const made = [...files.keys()]
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
  const manifests = ['.', 'compiler', 'console', 'release/bundled'].map(manifestOf);
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

test('the package.json of each room names what its files import, at the version of the root, and nothing else', (t) => {
  const [root, bundled] = ['.', 'release/bundled'].map(manifestOf);
  const versions = { ...root?.devDependencies, ...bundled?.dependencies, ...root?.dependencies };
  const optional = root?.peerDependencies ?? {};
  const packages = new Map(rooms.rooms.map((room) => [room, manifestOf(room)]));
  t.strictSame(
    rooms.rooms.filter((room) => root?.workspaces?.includes(room.slice(0, -1)) !== true),
    [],
    'each room is a workspace',
  );
  for (const [
    room,
    { private: own, dependencies = {}, devDependencies = {}, peerDependencies = {} },
  ] of packages) {
    if (WITHOUT_ROOMS.has(room)) continue;
    const { values, types } = packagesIn(room, Object.keys(optional));
    const neighbours = (rooms.allowed.get(room) ?? []).map((other) => packages.get(other)?.name ?? other);
    const needed = values.filter((name) => !(name in optional));
    t.ok(own, `${room} is private`);
    t.strictSame(Object.keys(dependencies), [...needed, ...neighbours].toSorted(), `${room}: dependencies`);
    t.strictSame(Object.keys(devDependencies), types, `${room}: packages of which it imports types alone`);
    t.strictSame(
      Object.keys(peerDependencies),
      values.filter((name) => name in optional),
      `${room}: optional packages`,
    );
    const named = Object.entries({ ...dependencies, ...devDependencies });
    t.strictSame(
      named.filter(([name, version]) => version !== (name.startsWith('osl-') ? '0.1.0' : versions[name])),
      [],
    );
    t.strictSame(
      Object.entries(peerDependencies).filter(([name, range]) => range !== optional[name]),
      [],
    );
  }
  t.end();
});

/** Packages that were there before the rooms: published by itself, or built by another tool. */
const WITHOUT_ROOMS: ReadonlySet<string> = new Set(['compiler/', 'console/']);
/** As `OF_PACKAGE`, with imports of types, and the `type` of those. */
const NAMED_PACKAGE =
  /^(?:import|export) (type )?[^;']* from '((?!node:|\.|osl-)[^']+)';$|(\btypeof )?(?:\bimport\(|createRequire\(import\.meta\.url\)(?:\.resolve)?\()'((?!node:|\.|osl-)[^']+)'\)/gm;

/** Packages that the files of a room import, in the order of the alphabet; of some only types. */
function packagesIn(room: string, optional: readonly string[]) {
  const values = new Set<string>();
  const types = new Set<string>();
  for (const file of files.keys()) {
    if (!file.startsWith(room) || BUILDS.test(file)) continue;
    const text = readFileSync(join(ROOT, file), 'utf8');
    for (const [, type, from = '', typeOf, called] of text.matchAll(NAMED_PACKAGE))
      (type === undefined && typeOf === undefined ? values : types).add(packageOf(called ?? from));
    for (const name of optional) if (text.includes(`'${name}'`)) values.add(name); // loaded by that name
  }
  return { values: [...values].toSorted(), types: [...types].filter((name) => !values.has(name)).toSorted() };
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest; // our own file
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly workspaces?: readonly string[];
  readonly devDependencies?: Readonly<Record<string, string>>;
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
