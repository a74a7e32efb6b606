import type { Catalogs } from './catalogs.js';
import { CatalogFault } from './fault.js';
import type { CatalogAsked, CatalogTold } from './remote.js';

/** Answers statements of other processes, each under the process and the id that it came with. */
export class CatalogServer {
  readonly #catalogs: Catalogs;
  readonly #running = new Map<string, AbortController>();

  constructor(catalogs: Catalogs) {
    this.#catalogs = catalogs;
  }

  async answer(process: number, asked: CatalogAsked): Promise<CatalogTold> {
    const { signature, subject, caller, text, parameterTypes, run } = asked;
    const model = asked.model ?? this.#catalogs.modelOf(signature);
    if (model === null) return { kind: 'unknown' };
    const key = `${process} ${asked.id}`;
    const stop = new AbortController();
    this.#running.set(key, stop);
    const { signal } = stop;
    try {
      return await this.#catalogs.use<CatalogTold>(model, subject, signal, async (engine) => {
        if (run === null)
          return {
            kind: 'described',
            described: await engine.describe(caller, text, parameterTypes, signal),
          };
        const { values, formats, maxRows } = run;
        const reply = await engine.query(caller, text, parameterTypes, values, formats, maxRows, signal);
        return { kind: 'reply', reply };
      });
    } catch (error) {
      if (error instanceof CatalogFault) return { kind: 'fault', report: error.report };
      throw error;
    } finally {
      this.#running.delete(key);
    }
  }

  stop(process: number, id: number): void {
    this.#running.get(`${process} ${id}`)?.abort();
  }

  /** A process has ended: nobody waits for its answers. */
  forget(process: number): void {
    for (const [key, stop] of this.#running) if (key.startsWith(`${process} `)) stop.abort();
  }
}
