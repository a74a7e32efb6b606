import type { Role } from './catalog/catalog.js';

/** Schemas of a search_path, in order. */
export function schemasOf(searchPath: string): readonly string[] {
  return searchPath
    .split(',')
    .map((part) => part.trim().replace(/^"(.*)"$/, '$1'))
    .filter((name) => name !== '');
}

const SEARCH_PATH = 'search_path=';

/** The search_path that ALTER ROLE gives a role, with its name in place of `$user`; null if it gives none. */
export function searchPathOf({ name, settings }: Role): readonly string[] | null {
  const own = settings.find((setting) => setting.startsWith(SEARCH_PATH));
  if (own === undefined) return null;
  return schemasOf(own.slice(SEARCH_PATH.length)).map((schema) => (schema === '$user' ? name : schema));
}
