import type { Command } from 'commander';
import type { IndexStatus, IndexSummary, OnIndexProgress } from '../../src/content/index.js';
import type { OpenedEngine } from '../../src/engine/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import { wordText } from '../../src/service/indexing/index-content.js';
import { dataDirOption, manifestOption, policyOption, type ServerFlags, wholeNumber } from '../flags.js';
import { print, printJson, visible } from '../output.js';
import { createProgress } from '../progress.js';
import { withEngines } from './rollup.js';

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
    .option('--status', 'say how far the stores are behind, and leave them as they are')
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
    const { watchIndex } = await import('./index-watch.js');
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
    await watchIndex({
      round,
      names: names.length > 0 ? names : [...manifest.facets.keys()],
      urls: await content.signallingUrls(manifest),
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
  const { contentStanding } = await import('../../src/service/indexing/index-content.js');
  const standings = await contentStanding(manifest, databases, names);
  if (asJson) printJson(standings);
  else for (const standing of standings) print(statusText(standing));
}

function statusText(s: IndexStatus): string {
  return `${s.facet} (${s.version}): ${stateText(s)}`;
}

function stateText({ state, documents, chunks, indexedAt, behind }: IndexStatus): string {
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
  broken: 'it is no PDF that can be read',
  encrypted: 'it is encrypted',
  'too large': 'it has more than 32 MiB',
  'too long': 'it has more than 10 million characters',
  late: 'it could not be read in a minute',
  memory: 'it takes too much memory to be read',
};

/** Formats the summary. It contains redacted words, so it is for operators only. */
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
