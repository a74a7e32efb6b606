import { asObject, asText, listAt, textAt } from './json.js';
import type { CreditRole, CreditRow, PersonRow } from './tables.js';

export type Person = Omit<PersonRow, 'id'>;

export interface PackageCredit {
  readonly person: Person;
  readonly role: CreditRole;
}

const KEYS: readonly (readonly [string, CreditRole])[] = [
  ['author', 'author'],
  ['maintainers', 'maintainer'],
  ['contributors', 'contributor'],
];

export function peopleIn(packageJson: unknown): readonly PackageCredit[] {
  return KEYS.flatMap(([key, role]) =>
    listAt(packageJson, key).flatMap((entry) => {
      const person = personOf(entry);
      return person === null ? [] : [{ person, role }];
    }),
  );
}

const LONGEST = 300;
const ADDRESS = /[^\s<>()@,;]+@[^\s<>()@,;]+\.[^\s<>()@,;]+/;

/** Parses `Name <email> (url)`, or an object with these members; null if it names no one. */
export function personOf(entry: unknown): Person | null {
  const object = asObject(entry);
  const text = object === null ? asText(entry) : textAt(object, 'name');
  const spelled = parseText((text ?? '').slice(0, LONGEST));
  const url = textAt(object, 'url') ?? textAt(object, 'web') ?? spelled.url;
  const email = addressIn(textAt(object, 'email')) ?? spelled.email ?? addressIn(url);
  if (spelled.name === null && email === null) return null;
  // An email address must not appear in the name or URL, because only the email column is declared personal.
  return { name: spelled.name ?? 'unnamed', email, url: addressIn(url) === null ? linkOf(url) : null };
}

function parseText(text: string): {
  readonly name: string | null;
  readonly email: string | null;
  readonly url: string | null;
} {
  const email = addressIn(/<([^>]*)>/.exec(text)?.[1] ?? null) ?? addressIn(text);
  const url = /\(([^)]*)\)/.exec(text)?.[1] ?? null;
  const rest = text.replace(/<[^>]*>?|\([^)]*\)?/g, ' ').replace(new RegExp(ADDRESS, 'g'), ' ');
  return { name: asText(rest.replace(/\s+/g, ' ').replace(/^[\s,;]+|[\s,;]+$/g, '')), email, url };
}

function addressIn(text: string | null): string | null {
  return ADDRESS.exec((text ?? '').slice(0, LONGEST).replace(/^mailto:/i, ''))?.[0] ?? null;
}

function linkOf(url: string | null): string | null {
  const text = asText(url)?.slice(0, LONGEST) ?? null;
  if (text === null) return null;
  return /^https?:\/\//i.test(text) ? text : /^[\w-]+(\.[\w-]+)+(\/|$)/.test(text) ? `https://${text}` : null;
}

/**
 * People and credits of all packages. A person is identified by name and address, ignoring case.
 *
 * Ids are numbered in the order of the lock file: with a hash of the address, readers without access could confirm a
 * guess.
 */
export function creditsOf(
  named: readonly (readonly [packagePath: string, people: readonly PackageCredit[]])[],
): {
  readonly people: readonly PersonRow[];
  readonly credits: readonly CreditRow[];
} {
  const people = new Map<string, PersonRow>();
  const credits = new Map<string, CreditRow>();
  for (const [package_path, entries] of named) {
    for (const { person, role } of entries) {
      const identity = JSON.stringify([person.name.toLowerCase(), person.email?.toLowerCase() ?? null]);
      const known = people.get(identity);
      const row = known ?? { id: `p${`${people.size + 1}`.padStart(4, '0')}`, ...person };
      if (known === undefined || (known.url === null && person.url !== null))
        people.set(identity, { ...row, url: row.url ?? person.url });
      credits.set(`${row.id} ${role} ${package_path}`, { person_id: row.id, package_path, role });
    }
  }
  return { people: [...people.values()], credits: [...credits.values()] };
}
