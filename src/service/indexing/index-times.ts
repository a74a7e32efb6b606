import { setTimeout } from 'node:timers/promises';
import { type Facet, indexedFacets, type Manifest } from '../../model/manifest/index.js';
import type { SystemReads } from '../system-reads.js';

const TRUST_MS = 5_000;
const PATIENCE_MS = 1_000;

/** Times by facet and version. */
type Times = ReadonlyMap<string, ReadonlyMap<string, string>>;

const NONE: Times = new Map();

/** Times at which the texts of facets were last read, as stored in the databases of their stores. */
export class IndexTimes {
  readonly #reads: Pick<SystemReads, 'readIndexTimes'>;
  readonly #known = new Map<string, { readonly until: number; readonly times: Promise<Times> }>();

  constructor(reads: Pick<SystemReads, 'readIndexTimes'>) {
    this.#reads = reads;
  }

  /** The oldest time among the stores of each facet; omitted if any is missing. */
  async of(manifest: Manifest, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const found = await Promise.all(
      names.map(async (name): Promise<readonly [string, string][]> => {
        const stores = indexedFacets(manifest).filter((f) => (f.legOf ?? f.name) === name);
        const times = (await Promise.all(stores.map((store) => this.#timesOf(store)))).flat();
        const known = times.filter((time) => time !== null).sort();
        const [oldest] = known;
        return oldest === undefined || known.length < times.length ? [] : [[name, oldest]];
      }),
    );
    return new Map(found.flat());
  }

  async #timesOf({ connector, name, versions }: Facet): Promise<readonly (string | null)[]> {
    const times = (await this.#read(connector)).get(name);
    return [...versions.keys()].map((version) => times?.get(version) ?? null);
  }

  #read(connector: string): Promise<Times> {
    const known = this.#known.get(connector);
    if (known !== undefined && known.until > Date.now()) return known.times;
    const reading = this.#reads.readIndexTimes(connector).then(
      (times) => times ?? NONE,
      () => NONE,
    );
    const waiting = new AbortController();
    const late = setTimeout(PATIENCE_MS, NONE, { signal: waiting.signal }).catch(() => NONE);
    const times = Promise.race([reading, late]).finally(() => waiting.abort());
    this.#known.set(connector, { until: Date.now() + TRUST_MS, times });
    return times;
  }
}
