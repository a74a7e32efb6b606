/** Rooms and parts of rooms, and who may import whom: read from the first two tables of docs/architecture.md. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../tools/cli/support.js';

const SOURCES = [
  'compiler/src',
  'clients/typescript',
  'console/src',
  'policy',
  'wire',
  'audit',
  'src',
  'interchange',
  'cli',
];
const DATABASES = ['pg', '@electric-sql/pglite', '@electric-sql/pglite-pgvector'];
/** The rooms that open databases themselves, and with what. */
const OPENS: Readonly<Record<string, readonly string[]>> = {
  // A client of `pg` without an error listener ends the process: one room makes all of them.
  'src/base/postgres/': ['pg'],
  'src/engine/': ['@electric-sql/pglite', '@electric-sql/pglite-pgvector'],
  'src/surfaces/catalog/': ['@electric-sql/pglite'],
};

const IMPORT = /(?:\bfrom|\bimport\(|^import)\s*'([^']+)'/gm;

export interface House {
  /** From bottom to top: folders, each with a slash at its end. */
  readonly rooms: readonly string[];
  readonly allowed: ReadonlyMap<string, readonly string[]>;
}

interface Arrow {
  readonly from: string;
  readonly to: string;
}

/** The table of rooms. */
export function readRooms(): House {
  return readTable('| room |');
}

/** The table of parts of rooms, which is finer. */
export function readHouse(): House {
  return readTable('| part |');
}

function readTable(head: string): House {
  const page = readFileSync(join(ROOT, 'docs', 'architecture.md'), 'utf8');
  const table = rowsOf(/^(?:\|.*\n)+/.exec(page.slice(page.indexOf(`\n${head}`) + 1))?.[0] ?? '');
  return {
    rooms: table.map(([room]) => namesIn(room)[0] ?? ''),
    allowed: new Map(table.map(([room, , cell]) => [namesIn(room)[0] ?? '', namesIn(cell)])),
  };
}

/** The room that a part is in, or that a room of the first table is itself. */
export function roomOfPart(part: string, { rooms }: House): string {
  return roomOf(part, rooms);
}

function rowsOf(table: string): readonly (readonly string[])[] {
  const lines = table.trim().split('\n').slice(2);
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

function namesIn(cell = ''): readonly string[] {
  return [...cell.matchAll(/`([^`]+\/)`/g)].map(([, name = '']) => name);
}

export interface Import extends Arrow {
  readonly file: string;
}

/** Every import, of a type or a value, that leaves the room of its file. */
export function importsOf({ rooms }: House): readonly Import[] {
  return SOURCES.flatMap((folder) => sourcesIn(folder)).flatMap((file) => {
    const from = roomOf(file, rooms);
    const text = readFileSync(join(ROOT, file), 'utf8');
    const specifiers = [...text.matchAll(IMPORT)];
    return specifiers.flatMap(([, specifier = '']) => {
      const to = targetOf(specifier, file, rooms);
      return to === null || to === from ? [] : [{ file, from, to }];
    });
  });
}

function sourcesIn(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return sourcesIn(path);
    return /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts') ? [path] : [];
  });
}

/** The innermost room; a file of none is in a room of its own name, which nobody may import. */
function roomOf(path: string, rooms: readonly string[]): string {
  const around = rooms.filter((room) => path.startsWith(room));
  return around.sort((a, b) => b.length - a.length)[0] ?? path;
}

function targetOf(specifier: string, file: string, rooms: readonly string[]): string | null {
  if (/^osl-compiler(\/|$)/.test(specifier)) return 'compiler/';
  if (specifier.startsWith('osl-console/')) return 'console/';
  if (specifier.endsWith('.css')) return null;
  return specifier.startsWith('.') ? roomOf(join(dirname(file), specifier), rooms) : null;
}

/** Rules of biome.json for imports: one override a room, or one for each depth of its folders. */
export function overridesOf(house: House): readonly unknown[] {
  return house.rooms.flatMap((room) => {
    const { rooms, allowed } = house;
    const may = allowed.get(room) ?? [];
    const denied = rooms.filter((other) => other !== room && !may.includes(other));
    const inner = rooms.filter((other) => other !== room && other.startsWith(room));
    const outer = denied.find((other) => room.startsWith(other));
    const depths = outer === undefined ? ['**'] : ['*.ts', '*/*.ts', '*/*/*.ts'];
    const message = `${room} may import ${may.length === 0 ? 'nothing of ours' : may.join(', ')}: docs/architecture.md`;
    return depths.map((files, depth) => ({
      includes: [`${room}${files}`, ...inner.map((other) => `!${other}**`)],
      linter: { rules: { style: { noRestrictedImports: restricted(room, depth, denied, rooms, message) } } },
    }));
  });
}

function restricted(
  room: string,
  depth: number,
  denied: readonly string[],
  rooms: readonly string[],
  message: string,
): unknown {
  const outside = DATABASES.filter((name) => !OPENS[room]?.includes(name));
  const paths = Object.fromEntries(
    outside.map((name) => [name, 'databases are reached through the two doors of src/engine']),
  );
  const groups = [...new Set(denied.flatMap((other) => globsOf(room, depth, other, rooms, denied)))];
  const pure =
    room === 'compiler/'
      ? [{ group: ['node:*', 'fastify', 'jose'], message: 'the compiler is pure: no I/O' }]
      : [];
  const ours = groups.length === 0 ? [] : [{ group: groups, message }];
  return {
    level: 'error',
    options: { ...(groups.length + pure.length > 0 && { patterns: [...ours, ...pure] }), paths },
  };
}

/** Pattern of specifiers in `room`, `depth` folders down, that name a file of `other`. */
function globsOf(
  room: string,
  depth: number,
  other: string,
  rooms: readonly string[],
  denied: readonly string[],
): readonly string[] {
  if (other === 'compiler/') return ['osl-compiler', '**/compiler/**'];
  // By its own name: a folder of the server has the same one.
  if (other === 'console/') return ['osl-console/**', '**/console/src/**'];
  if (room.startsWith(other)) {
    const up = room.slice(other.length).split('/').length - 1 + depth;
    return [`${'../'.repeat(up)}*`];
  }
  // The outermost folder that holds nothing but what is denied, and not the room itself, stands for all in it.
  const parts = other.split('/').slice(0, -1);
  const folders = parts.map((_, i) => `${parts.slice(0, i + 1).join('/')}/`);
  const whole = folders.find(
    (folder) => !room.startsWith(folder) && rooms.every((r) => !r.startsWith(folder) || denied.includes(r)),
  );
  const folder = whole ?? other;
  const [root = '', parent = ''] = folder.split('/');
  const common = [`${root}/${parent}/`, `${root}/`].find((p) => p !== folder && room.startsWith(p));
  const path = folder.slice((common ?? (folder === 'src/' ? '' : root === 'src' ? 'src/' : '')).length);
  return [`**/${path}${whole === undefined ? '*' : '**'}`];
}

/** Every source file, with the files of ours that it imports, of types or values. */
export function filesOf(): ReadonlyMap<string, readonly string[]> {
  const files = [...SOURCES, 'bench'].flatMap((folder) => sourcesIn(folder));
  return new Map(
    files.map((file) => {
      const text = readFileSync(join(ROOT, file), 'utf8');
      const named = [...text.matchAll(IMPORT)].map(([, to = '']) =>
        join(dirname(file), to).replace(/\.js$/, ''),
      );
      return [file, named.flatMap((to) => [`${to}.ts`, `${to}.tsx`]).filter((to) => files.includes(to))];
    }),
  );
}

/** Sets of files that all reach each other by imports, each in the order of the alphabet. */
export function circlesOf(imports: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const reached = new Map([...imports.keys()].map((file) => [file, reachedFrom(file, imports)]));
  const circles = new Map<string, readonly string[]>();
  for (const [file, others] of reached) {
    const circle = [...others].filter((other) => reached.get(other)?.has(file) === true).toSorted();
    if (circle.length > 0) circles.set(circle.join(' '), circle);
  }
  return [...circles.values()];
}

/** Returns all files that `from` imports, directly or not; `from` itself only if an import leads back to it. */
function reachedFrom(from: string, imports: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const reached = new Set<string>();
  const next = [...(imports.get(from) ?? [])];
  for (let file = next.pop(); file !== undefined; file = next.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    next.push(...(imports.get(file) ?? []));
  }
  return reached;
}
