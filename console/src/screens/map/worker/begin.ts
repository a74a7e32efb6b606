/** Begins the thread of the map, from a file of this origin. */
export function beginMapThread(): Worker {
  return new Worker(new URL('./thread.ts', import.meta.url), { type: 'module' });
}
