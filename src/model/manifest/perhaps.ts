import { nearest } from 'osl-compiler';

/** "perhaps you meant …", or null where no candidate is near. */
export function perhaps(name: string, candidates: Iterable<string>): string | null {
  // A manifest may hold text of any length where a name should be.
  const near = nearest(name.slice(0, LONGEST_NAME), candidates);
  return near === null ? null : `perhaps you meant \`${near}\``;
}

const LONGEST_NAME = 130;
