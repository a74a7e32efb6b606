import { Session } from 'node:inspector';
import { setFlagsFromString } from 'node:v8';

/**
 * How much each pass of the compiler does, counted and not timed: how often each block of its code runs. What V8 does
 * natively, such as copying a list, does not count.
 */

/** By pass: how many blocks of its code ran. */
export type Work = ReadonlyMap<string, number>;

/** By the beginning of a file's path below `compiler/dist` or `src`; the first that fits. */
const PASSES: readonly (readonly [string, string])[] = [
  ['compiler/dist/bind/size-limits', 'expand'],
  ['compiler/dist/bind/', 'bind'],
  ['compiler/dist/functions/', 'bind'],
  ['compiler/dist/plan/fingerprint', 'bind'],
  ['compiler/dist/text/lexical', 'look'],
  ['compiler/dist/text/parse', 'look'],
  ['compiler/dist/text/text', 'look'],
  ['compiler/dist/world', 'world'],
  ['compiler/dist/text/shape', 'template'],
  ['compiler/dist/govern/template', 'template'],
  ['compiler/dist/govern/verify/barrier', 'verify the barrier'],
  ['compiler/dist/govern/verify/proofs', 'verify the barrier'],
  ['compiler/dist/govern/verify/', 'verify'],
  ['compiler/dist/govern/barrier/guard', 'guard'],
  ['compiler/dist/govern/barrier/barrier', 'barrier'],
  ['compiler/dist/govern/barrier/row-reach', 'barrier'],
  ['compiler/dist/govern/barrier/harmless', 'barrier'],
  ['compiler/dist/govern/barrier/constants', 'barrier'],
  ['compiler/dist/govern/outputs', 'outputs'],
  ['compiler/dist/govern/lineage', 'outputs'],
  ['compiler/dist/govern/', 'govern'],
  ['compiler/dist/emit/', 'emit'],
  ['compiler/dist/explain', 'explain'],
  ['compiler/dist/lineage/', 'lineage'],
  ['compiler/dist/plan/walk', 'walk'],
  ['compiler/dist/plan/query-tree', 'walk'],
  ['compiler/dist/', 'the rest'],
  ['src/surfaces/rest/', 'columns of the answer'],
];

export class PassCounter {
  readonly #session = new Session();

  constructor() {
    // Code that is thrown away takes its counts with it.
    setFlagsFromString('--no-flush-bytecode');
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** What `run` has the passes do. */
  count(run: () => void): Work {
    this.#taken();
    run();
    return this.#taken();
  }

  close(): void {
    this.#session.disconnect();
  }

  #taken(): Work {
    const work = new Map<string, number>();
    // The answer comes before `post` is back: the inspector of one's own thread does not wait.
    this.#session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error !== null) throw error;
      for (const { url, functions } of result) {
        const pass = passOf(url);
        if (pass === null) continue;
        let blocks = 0;
        for (const { ranges } of functions) for (const { count } of ranges) blocks += count;
        work.set(pass, (work.get(pass) ?? 0) + blocks);
      }
    });
    return work;
  }
}

function passOf(url: string): string | null {
  const found = PASSES.find(([path]) => url.includes(`/${path}`));
  return found === undefined ? null : found[1];
}
