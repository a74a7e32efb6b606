/** Begins the thread of the metrics screen, from a file of this origin. */
export function beginCatalogThread(): Worker {
  return new Worker(new URL('./thread.ts', import.meta.url), { type: 'module' });
}
