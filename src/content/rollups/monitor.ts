import { setTimeout as sleep } from 'node:timers/promises';
import type { Manifest } from '../../model/manifest/index.js';
import type { RollupState } from './build.js';

/** The rollups that queries may currently use. */
export interface UsableRollups {
  readonly builtAt: ReadonlyMap<string, number>;
  /** The rollups' names, which are part of the cache keys of plans that use them. */
  readonly key: string;
}

type ReadStates = (connector: string) => Promise<readonly RollupState[] | null>;

const NONE: UsableRollups = Object.freeze({ builtAt: new Map(), key: '' });

const EVERY_MS = 1_000;
const START_MS = 2_000;

/**
 * State of a manifest's rollups, polled once a second by each process. A rollup counts as not built if its definition
 * differs, or if it is too old or cannot be read.
 */
export class RollupMonitor {
  readonly #manifest: () => Manifest;
  readonly #readStates: ReadStates;
  readonly #onFault: (connector: string, error: unknown) => void;
  readonly #states = new Map<string, readonly RollupState[]>();
  readonly #faulty = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  /** @param onFault called once for each connector whose rollups cannot be read */
  constructor(
    manifest: () => Manifest,
    readStates: ReadStates,
    onFault: (connector: string, error: unknown) => void,
  ) {
    this.#manifest = manifest;
    this.#readStates = readStates;
    this.#onFault = onFault;
  }

  /** Reads the state immediately, and then periodically. */
  async start(): Promise<this> {
    await Promise.race([this.refresh(), sleep(START_MS, undefined, { ref: false })]);
    this.#again();
    return this;
  }

  usable(manifest: Manifest): UsableRollups {
    if (manifest.rollups.size === 0) return NONE;
    const builtAt = new Map<string, number>();
    const now = Date.now();
    for (const [name, { connector, fingerprint, maxAgeMs }] of manifest.rollups) {
      const state = this.#states.get(connector)?.find((s) => s.rollup === name);
      if (state?.fingerprint === fingerprint && now - state.builtAt <= maxAgeMs)
        builtAt.set(name, state.builtAt);
    }
    return { builtAt, key: [...builtAt.keys()].join(' ') };
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async refresh(): Promise<void> {
    const connectors = new Set([...this.#manifest().rollups.values()].map((r) => r.connector));
    await Promise.all(
      [...connectors].map(async (name) => {
        try {
          const states = await this.#readStates(name);
          if (states === null) return;
          this.#states.set(name, states);
          this.#faulty.delete(name);
        } catch (error) {
          this.#states.delete(name);
          if (!this.#faulty.has(name)) this.#onFault(name, error);
          this.#faulty.add(name);
        }
      }),
    );
  }

  #again(): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.refresh().finally(() => this.#again()), EVERY_MS).unref();
  }
}
