import { InternalError } from 'osl-compiler';
import type { Catalogs } from './catalogs.js';
import { CatalogFault } from './fault.js';
import type { CatalogModel } from './model.js';
import type { CatalogAsked, CatalogPart, CatalogTold } from './remote.js';

/** Runs catalog statements for other processes, keyed by process and request id. */
export class CatalogServer {
  readonly #catalogs: Catalogs;
  readonly #running = new Map<string, AbortController>();
  /** Parts of a statement's model received so far. */
  readonly #sent = new Map<string, CatalogPart[]>();

  constructor(catalogs: Catalogs) {
    this.#catalogs = catalogs;
  }

  async answer(process: number, asked: CatalogAsked): Promise<CatalogTold> {
    const { signature, subject, caller, text, parameterTypes, run } = asked;
    const key = `${process} ${asked.id}`;
    const model = this.#sentModel(key) ?? this.#catalogs.modelOf(signature);
    if (model === null) return { kind: 'unknown' };
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

  /** Stores one part of a statement's model. */
  take(process: number, part: CatalogPart): void {
    const key = `${process} ${part.id}`;
    const parts = this.#sent.get(key) ?? [];
    if (part.at !== parts.length) throw new InternalError('a part of a catalog is missing');
    parts.push(part);
    this.#sent.set(key, parts);
  }

  /** Cancels a statement. */
  stop(process: number, id: number): void {
    const key = `${process} ${id}`;
    this.#sent.delete(key);
    this.#running.get(key)?.abort();
  }

  #sentModel(key: string): CatalogModel | null {
    const sent = this.#sent.get(key);
    const [first] = sent ?? [];
    if (sent === undefined || first === undefined || sent.length < first.of) return null;
    this.#sent.delete(key);
    const { signature, entities, columns } = first;
    return Object.freeze({ signature, entities, columns, parts: sent.map(({ part }) => part) });
  }

  /** Cancels all statements of a process that has ended. */
  forget(process: number): void {
    for (const [key, stop] of this.#running) if (key.startsWith(`${process} `)) stop.abort();
    for (const key of this.#sent.keys()) if (key.startsWith(`${process} `)) this.#sent.delete(key);
  }
}
