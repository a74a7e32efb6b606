import type { Command } from 'commander';
import type { ServiceLog } from '../../src/base/log.js';
import type { OpenedEngine } from '../../src/engine/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import type { RollupReport } from '../../src/service/rollups.js';
import type { Settings } from '../../src/service/settings.js';
import { dataDirOption, manifestOption, policyOption, type ServerFlags, settingsOfModel } from '../flags.js';
import { print, printJson } from '../output.js';

const HELP = `
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
  const rollup = program.command('rollup').addHelpText('after', HELP);
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
    else for (const report of reports) print(`${report.rollup} (${report.entity}): ${stateText(report)}`);
  });
}

function stateText({ state, builtAt, rows, maxAgeSeconds }: RollupReport): string {
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
export async function withEngines(
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
