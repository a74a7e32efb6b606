export function beginMapThread(): Worker {
  return new Worker(new URL('./thread.ts', import.meta.url), { type: 'module' });
}
