import type { Command } from 'commander';
import type { IndexSummary } from '../../../content/index.js';
import { dataDirOption, manifestOption, policyOption, type ServerFlags, settingsOf } from '../flags.js';
import { print, printJson } from '../output.js';
import { createProgress } from '../progress.js';

const HELP = `
Reads the documents of each facet anew and brings every version of its store up to date; what did not change is not
touched. An embedded database must not be in use: stop the server first. A native one may be.
Embedding models other than lexical-v1 need OSL_EMBEDDINGS_URL (and OSL_EMBEDDINGS_KEY).

Examples:
  $ osl index
  $ osl index readme --json | jq '.[].chunks'`;

interface IndexFlags extends ServerFlags {
  readonly json?: true;
}

export function addIndex(program: Command): void {
  program
    .command('index')
    .description('bring the stores of text facets up to date')
    .argument('[facets...]', 'facets; all of them unless named')
    .addOption(manifestOption())
    .addOption(policyOption())
    .addOption(dataDirOption())
    .option('--json', 'summaries as JSON on standard output')
    .addHelpText('after', HELP)
    .action(runIndex);
}

async function runIndex(names: readonly string[], flags: IndexFlags): Promise<void> {
  const settings = settingsOf(flags);
  const { ready } = await import('osl-compiler');
  const { loadServed } = await import('../../../service/served.js');
  const { openEngines } = await import('../../../service/engines.js');
  const { indexContent, paceText } = await import('../../../service/index-content.js');
  const { operatorLog } = await import('../log.js');
  await ready();
  const { manifest } = await loadServed(settings);
  const progress = createProgress();
  const { engines, close } = await openEngines(manifest, settings, operatorLog());
  try {
    const summaries = await indexContent(manifest, engines, settings.content, names, (p) =>
      progress.step(`indexing ${p.facet} ${p.version}`, p.done, p.total, paceText(p)),
    );
    progress.end();
    if (flags.json) printJson(summaries);
    else for (const summary of summaries) print(summaryText(summary));
  } finally {
    progress.end();
    await close();
  }
}

function summaryText(s: IndexSummary): string {
  const kinds = Object.entries(s.redactions.byKind).map(([kind, n]) => `${n} ${kind}`);
  const redacted = kinds.length === 0 ? '' : `; redacted: ${kinds.join(', ')}`;
  return (
    `${s.facet} (${s.version}): ${s.documents} documents, ${s.chunks} passages` +
    `; ${s.added} added, ${s.changed} changed, ${s.removed} removed in ${(s.tookMs / 1000).toFixed(1)} s${redacted}`
  );
}
