import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The installation as plain JavaScript counts it, from package-lock.json and the files under node_modules. It
 * shares no line with cli/demo or the database, so that both being wrong in the same way is unlikely.
 */
export interface Package {
  path: string;
  name: string;
  version: string;
  license: string;
  licenseClass: string;
  dev: boolean;
  optional: boolean;
  bytes: number;
  files: number;
  hasTypes: boolean;
  engines: string | null;
  homepage: string | null;
  dependents: number;
}

interface Person {
  id: string;
  name: string;
  email: string | null;
  url: string | null;
}

interface Dependency {
  from: string;
  to: string;
  kind: string;
  range: string;
}

interface Credit {
  person: string;
  path: string;
  role: string;
}

export interface Installation {
  readonly packages: readonly Package[];
  readonly people: readonly Person[];
  readonly dependencies: readonly Dependency[];
  readonly credits: readonly Credit[];
}

type Json = Record<string, unknown>;

/** JSON that npm wrote: objects where we look for members. */
function readJson(file: string): Json {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8').replace(/^\ufeff/, '')) as Json) : {};
}

function object(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
}

export function countInstallation(root: string): Installation {
  const lock = object(readJson(join(root, 'package-lock.json'))['packages']);
  const paths = Object.keys(lock)
    .filter(
      (p) =>
        p.startsWith('node_modules/') && existsSync(join(root, p)) && statSync(join(root, p)).isDirectory(),
    )
    .sort();
  const packages: Package[] = [];
  const dependencies: Dependency[] = [];
  const people = new Map<string, Person>();
  const credits = new Map<string, Credit>();
  for (const path of paths) {
    const entry = object(lock[path]);
    const linked = entry['link'] === true;
    const facts = linked ? object(lock[String(entry['resolved'])]) : entry;
    const home = linked ? String(entry['resolved']) : path;
    const own = readJson(join(root, path, 'package.json'));
    const license = licenseOf(facts) ?? licenseOf(own) ?? 'UNKNOWN';
    const { bytes, files } = linked ? { bytes: 0, files: 0 } : measure(join(root, path));
    packages.push({
      path,
      name: text(facts['name']) ?? path.replace(/^.*node_modules\//, ''),
      version: text(facts['version']) ?? String(own['version']),
      license,
      licenseClass: classOf(license),
      dev: facts['dev'] === true,
      optional: facts['optional'] === true,
      bytes,
      files,
      hasTypes:
        text(own['types']) !== null || text(own['typings']) !== null || hasKey(own['exports'], 'types'),
      engines: text(object(own['engines'])['node']),
      homepage: text(own['homepage']),
      dependents: 0,
    });
    for (const [key, kind] of Object.entries(KINDS)) {
      for (const [name, range] of Object.entries(object(facts[key]))) {
        const to = found(home, name, paths);
        if (to !== null) dependencies.push({ from: path, to, kind, range: String(range) });
      }
    }
    for (const [key, role] of Object.entries(ROLES)) {
      const named = own[key];
      for (const one of Array.isArray(named) ? named : named === undefined ? [] : [named]) {
        const person = personOf(one);
        if (person === null) continue;
        const identity = `${person.name.toLowerCase()} ${person.email?.toLowerCase() ?? ''}`;
        const known = people.get(identity) ?? {
          id: `p${String(people.size + 1).padStart(4, '0')}`,
          ...person,
        };
        people.set(identity, { ...known, url: known.url ?? person.url });
        credits.set(`${known.id} ${path} ${role}`, { person: known.id, path, role });
      }
    }
  }
  for (const p of packages)
    p.dependents = new Set(dependencies.filter((d) => d.to === p.path).map((d) => d.from)).size;
  return { packages, people: [...people.values()], dependencies, credits: [...credits.values()] };
}

const KINDS = {
  dependencies: 'prod',
  devDependencies: 'dev',
  peerDependencies: 'peer',
  optionalDependencies: 'optional',
};
const ROLES = { author: 'author', maintainers: 'maintainer', contributors: 'contributor' };

function licenseOf(json: Json): string | null {
  const one = json['license'] ?? json['licenses'];
  const names = (Array.isArray(one) ? one : [one]).map((l) => text(l) ?? text(object(l)['type']));
  const stated = names.filter((n) => n !== null);
  return stated.length === 0 ? null : stated.join(' OR ').replace(/^\((.*)\)$/, '$1');
}

/** Kinds of all licences of such an installation; a person must add a new one. */
function classOf(license: string): string {
  const choices = license.split(' OR ').map((id) => {
    if (/^(MIT|ISC|0?BSD|Apache)(-.*)?$/.test(id)) return 'permissive';
    if (
      /^(BlueOak-1.0.0|CC0-1.0|CC-BY-[34].0|WTFPL|Unlicense|Python-2.0|PSF-2.0|Zlib|Artistic-2.0)$/.test(id)
    )
      return 'other';
    if (/^(A|L)?GPL|^MPL|^EPL/.test(id)) return 'copyleft';
    return 'unknown';
  });
  const weakest = ['permissive', 'other', 'unknown', 'copyleft'] as const;
  return weakest.find((c) => choices.includes(c)) ?? 'unknown';
}

function hasKey(value: unknown, key: string): boolean {
  return Object.entries(object(value)).some(([k, v]) => k === key || hasKey(v, key));
}

function measure(folder: string): { bytes: number; files: number } {
  let bytes = 0;
  let files = 0;
  if (!lstatSync(folder).isDirectory()) return { bytes, files };
  const pending = [folder];
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    for (const name of readdirSync(at)) {
      const stat = lstatSync(join(at, name));
      if (stat.isDirectory() && name !== 'node_modules') pending.push(join(at, name));
      if (stat.isFile()) {
        bytes += stat.size;
        files += 1;
      }
    }
  }
  return { bytes, files };
}

/** Where Node finds `name` from `home`: in node_modules beside it, or of a folder above. */
function found(home: string, name: string, paths: readonly string[]): string | null {
  const inside = (folder: string) => `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
  for (let folder = home; ; folder = folder.includes('/') ? folder.slice(0, folder.lastIndexOf('/')) : '') {
    if (!/(^|\/)node_modules$/.test(folder) && paths.includes(inside(folder))) return inside(folder);
    if (folder === '') return null;
  }
}

const ADDRESS = /[^\s<>()@,;]+@[^\s<>()@,;]+\.[^\s<>()@,;]+/;

function personOf(value: unknown): Omit<Person, 'id'> | null {
  const stated = typeof value === 'string' ? { name: value } : object(value);
  const whole = text(object(stated)['name']) ?? '';
  const email = ADDRESS.exec(text(object(stated)['email']) ?? '')?.[0] ?? ADDRESS.exec(whole)?.[0] ?? null;
  const page = text(object(stated)['url']) ?? /\((.*?)\)/.exec(whole)?.[1] ?? null;
  const name = whole
    .replace(/<.*?>|\(.*?\)/g, ' ')
    .replace(ADDRESS, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  if (name === '' && email === null) return null;
  const url = page === null || page.includes('@') ? null : /^https?:/.test(page) ? page : `https://${page}`;
  return { name: name === '' ? 'unnamed' : name, email, url };
}
