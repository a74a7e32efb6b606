const WORDS: ReadonlyMap<unknown, string> = new Map([
  ['clear', 'in the clear'],
  ['partly_masked', 'masked in some rows'],
  ['masked', 'masked'],
  ['aggregates', 'in figures over groups only'],
  ['nothing', 'not at all'],
]);

export function sightWords(sees: unknown): string {
  return WORDS.get(sees) ?? String(sees);
}
