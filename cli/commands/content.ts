import { type Command, Option } from 'commander';
import type { ServiceLog } from '../../src/base/log.js';
import { messageOf } from '../../src/base/thrown.js';
import type { IndexStatus, IndexSummary, OnIndexProgress } from '../../src/content/index.js';
import type { OpenedEngine } from '../../src/engine/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import { IndexSignals, wordText } from '../../src/service/indexing/index-content.js';
import type { RollupReport } from '../../src/service/rollups.js';
import type { Settings } from '../../src/service/settings.js';
import {
  dataDirOption,
  manifestOption,
  policyOption,
  type ServerFlags,
  settingsOfModel,
  wholeNumber,
} from '../flags.js';
import { createProgress, print, printJson, visible } from '../output.js';

const HELP = `
Reads the documents of each facet anew and brings every version of its store up to date; what did not change is not
touched. An embedded database must not be in use: stop the server first. A native one may be.
Embedding models that are not in this process need OSL_EMBEDDINGS_URL (and OSL_EMBEDDINGS_KEY).
With --watch it goes on until it is stopped: after each interval, and at once where a native database says so by
\`notify osl_index\`, with a facet's name or without one.
With --status nothing is written: it reads the documents, and says how old each store is and how many rows it is
behind.

Examples:
  $ osl index
  $ osl index readme --json | jq '.[].chunks'
  $ osl index --watch --every 300`;

interface IndexFlags extends ServerFlags {
  readonly status?: true;
  readonly watch?: true;
  readonly every: number;
}

export function addIndex(program: Command): void {
  program
    .command('index')
    .argument('[facets...]', 'facets; all of them unless named')
    .addOption(manifestOption())
    .addOption(policyOption())
    .addOption(dataDirOption())
    .option('--json', 'summaries as JSON on standard output')
    .addOption(
      new Option('--status', 'say how far the stores are behind, and leave them as they are').conflicts(
        'watch',
      ),
    )
    .option('--watch', 'go on: at intervals, and when a database tells of a change')
    .option('--every <seconds>', 'the interval of --watch', wholeNumber(1, 86_400), 60)
    .addHelpText('after', HELP)
    .action(runIndex);
}

async function runIndex(names: readonly string[], flags: IndexFlags): Promise<void> {
  await withEngines(flags, async ({ settings, manifest, databases, log }) => {
    const content = await import('../../src/service/indexing/index-content.js');
    if (flags.status) return printStatus(manifest, databases, names, flags.json === true);
    const progress = await createProgress();
    const stop = new AbortController();
    const { signal } = stop;
    const show: OnIndexProgress = (p) =>
      progress.step(`indexing ${p.facet} ${p.version}`, p.done, p.total, content.paceText(p));
    const round = async (some: readonly string[], readAt: Date | null): Promise<void> => {
      const wanted = some.length > 0 ? some : names;
      try {
        const options = { signal, readAt };
        const summaries = await content.indexContent(
          manifest,
          databases,
          settings.content,
          wanted,
          show,
          options,
        );
        progress.end();
        if (flags.json) printJson(summaries);
        else for (const summary of summaries) for (const line of summaryLines(summary)) print(line);
      } finally {
        progress.end();
      }
    };
    if (!flags.watch) return round([], new Date());
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
    await watchIndex({
      round,
      names: names.length > 0 ? names : [...manifest.facets.keys()],
      urls: await content.notificationUrls(manifest),
      everySeconds: flags.every,
      signal,
      log,
    });
  });
}

async function printStatus(
  manifest: Manifest,
  databases: ReadonlyMap<string, OpenedEngine>,
  names: readonly string[],
  asJson: boolean,
): Promise<void> {
  const { contentStatus } = await import('../../src/service/indexing/index-content.js');
  const standings = await contentStatus(manifest, databases, names);
  if (asJson) printJson(standings);
  else for (const standing of standings) print(statusText(standing));
}

function statusText(s: IndexStatus): string {
  return `${s.facet} (${s.version}): ${facetText(s)}`;
}

function facetText({ state, documents, chunks, indexedAt, behind }: IndexStatus): string {
  const held = `${documents} documents, ${chunks} passages, read ${indexedAt ?? 'at no known time'}`;
  switch (state) {
    case 'missing':
      return 'not indexed';
    case 'building':
      return 'its first indexing has not ended';
    case 'stale':
      return `${held}; made by another manifest: \`osl index\` builds it anew`;
    case 'ready': {
      const { added, changed, removed } = behind ?? { added: 0, changed: 0, removed: 0 };
      const rows = added + changed + removed;
      return `${held}; ${rows} rows behind: ${added} new, ${changed} changed, ${removed} gone`;
    }
  }
}

/** Texts for the reasons why a document could not be read. */
const REASONS: Readonly<Record<IndexSummary['unreadable'][number]['reason'], string>> = {
  broken: 'it is not a PDF that can be read',
  encrypted: 'it is encrypted',
  'too large': 'it has more than 32 MiB',
  'too long': 'it has more than 10 million characters',
  late: 'it could not be read in a minute',
  memory: 'it takes too much memory to be read',
};

/** Formats the summary. It shows the text of redacted words, so it is for operators only. */
function summaryLines(s: IndexSummary): readonly string[] {
  const left = s.unreadable.map(
    ({ id, reason }) => `  ${visible(`document ${id} is left out: ${REASONS[reason]}`)}`,
  );
  return [
    summaryText(s),
    ...left,
    ...s.redactions.words.map((word) => `  ${visible(wordText(s.facet, word))}`),
  ];
}

function summaryText(s: IndexSummary): string {
  const kinds = Object.entries(s.redactions.byKind).map(([kind, n]) => `${n} ${kind}`);
  const redacted = kinds.length === 0 ? '' : `; redacted: ${kinds.join(', ')}`;
  return (
    `${s.facet} (${s.version}): ${s.documents} documents, ${s.chunks} passages` +
    `; ${s.added} added, ${s.changed} changed, ${s.removed} removed in ${(s.tookMs / 1000).toFixed(1)} s${redacted}`
  );
}

export interface IndexWatchOptions {
  /**
   * Updates the stores of the facets `names`; an empty list means all watched facets. `readAt` is the scheduled start
   * time of the round; null if a notification caused it.
   */
  readonly round: (names: readonly string[], readAt: Date | null) => Promise<void>;
  readonly names: readonly string[];
  readonly urls: readonly string[];
  readonly everySeconds: number;
  readonly signal: AbortSignal;
  readonly log: ServiceLog;
}

/**
 * Indexes immediately, then at each interval and each notification, until `signal` aborts. Errors after the first
 * round are logged, and the next interval tries again.
 *
 * INVARIANT: rounds start at whole intervals counted from the first one, whatever changes meanwhile and however long a
 * round takes, because callers are shown these times.
 */
export async function watchIndex({
  round,
  names,
  urls,
  everySeconds,
  signal,
  log,
}: IndexWatchOptions): Promise<void> {
  const signals = new IndexSignals(urls, log);
  try {
    await signals.listen();
    const turns = new RoundSchedule(everySeconds * 1_000);
    await round([], turns.take());
    while (!signal.aborted) {
      const heard = await signals.next(turns.wait(), signal);
      if (signal.aborted) return;
      const isTurn = turns.wait() === 0;
      const isAll = isTurn || heard.includes('');
      const known = heard.filter((name) => names.includes(name));
      if (!isAll && known.length === 0) continue;
      await signals.listen();
      await round(isAll ? [] : known, isTurn ? turns.take() : null).catch((error: unknown) => {
        if (!signal.aborted)
          log.error('not indexed: tried again at the next interval', { cause: messageOf(error) });
      });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await signals.close();
  }
}

class RoundSchedule {
  readonly #every: number;
  /** Start time on a monotonic clock, because the system clock may be adjusted. */
  readonly #start = performance.now();
  readonly #began = Date.now();
  #taken = -1;

  constructor(every: number) {
    this.#every = every;
  }

  /** Milliseconds until the next scheduled round; 0 if it should start now. */
  wait(): number {
    return Math.max(0, Math.ceil(this.#start + (this.#taken + 1) * this.#every - performance.now()));
  }

  /** Marks the latest scheduled round as started and returns its time. */
  take(): Date {
    this.#taken = Math.floor((performance.now() - this.#start) / this.#every);
    return new Date(this.#began + this.#taken * this.#every);
  }
}

const ROLLUP_HELP = `
A rollup of the manifest is a table of what was aggregated before, in the schema osl_rollups of its entity's database.
\`build\` makes it anew and puts it in the place of the one before, in one transaction; a server takes it up within a
second. \`status\` says which rollups are used. An embedded database must not be in use: stop the server first. A native
one takes the system role, <url_env>_SYSTEM. More: docs/caching.md.

Examples:
  $ osl rollup build
  $ osl rollup build orders_by_day
  $ osl rollup status --json | jq '.[] | select(.state != "ready")'`;

const BUILD_EXAMPLES = `
Examples:
  $ osl rollup build
  $ osl rollup build orders_by_day`;

const STATUS_EXAMPLES = `
Examples:
  $ osl rollup status
  $ osl rollup status --json | jq '.[] | select(.state != "ready")'`;

export function addRollup(program: Command): void {
  const rollup = program.command('rollup').addHelpText('after', ROLLUP_HELP);
  const sub = (name: string, what: string, examples: string): Command =>
    rollup
      .command(name)
      .description(what)
      .argument('[rollups...]', 'rollups; all of them unless named')
      .addOption(manifestOption())
      .addOption(policyOption())
      .addOption(dataDirOption())
      .option('--json', 'as JSON on standard output')
      .addHelpText('after', examples);
  sub('build', 'build rollups anew', BUILD_EXAMPLES).action(runBuild);
  sub('status', 'say when rollups were built, and which are used', STATUS_EXAMPLES).action(runStatus);
}

async function runBuild(names: readonly string[], flags: ServerFlags): Promise<void> {
  const { buildRollups } = await import('../../src/service/rollups.js');
  await withEngines(flags, async ({ manifest, databases }) => {
    const all: object[] = [];
    await buildRollups(manifest, databases, names, (built) => {
      all.push(built);
      const seconds = (built.milliseconds / 1_000).toFixed(1);
      if (flags.json !== true)
        print(`${built.rollup}: ${built.rows} rows in ${seconds} s, as of ${built.builtAt.toISOString()}`);
    });
    if (flags.json === true) printJson(all);
  });
}

async function runStatus(names: readonly string[], flags: ServerFlags): Promise<void> {
  const { rollupReports } = await import('../../src/service/rollups.js');
  const { systemReads } = await import('../../src/service/system-reads.js');
  await withEngines(flags, async ({ manifest, databases }) => {
    const reports = await rollupReports(manifest, systemReads(databases), names);
    if (flags.json === true) printJson(reports);
    else for (const report of reports) print(`${report.rollup} (${report.entity}): ${rollupText(report)}`);
  });
}

function rollupText({ state, builtAt, rows, maxAgeSeconds }: RollupReport): string {
  const built = `${rows} rows, as of ${builtAt}`;
  switch (state) {
    case 'ready':
      return `used; ${built}`;
    case 'not built':
      return 'not built: `osl rollup build` builds it';
    case 'changed':
      return `not used, since it was built of another definition; ${built}`;
    case 'old':
      return `not used, since it is older than ${maxAgeSeconds} s; ${built}`;
  }
}

interface ServedEngines {
  readonly settings: Settings;
  readonly manifest: Manifest;
  readonly databases: ReadonlyMap<string, OpenedEngine>;
  readonly log: ServiceLog;
}

/** Runs `work` with the served manifest and its databases. */
async function withEngines(
  flags: ServerFlags,
  work: (served: ServedEngines) => Promise<void>,
): Promise<void> {
  const settings = settingsOfModel(flags);
  const { ready } = await import('osl-compiler');
  const { loadServed } = await import('../../src/service/model.js');
  const { openEngines } = await import('../../src/service/engines.js');
  const { operatorLog } = await import('../log.js');
  await ready();
  const { manifest } = await loadServed(settings);
  const log = operatorLog();
  const { databases, close } = await openEngines(manifest, settings, log);
  try {
    await work({ settings, manifest, databases, log });
  } finally {
    await close();
  }
}
