import { StartProblem } from '../base/start-problem.js';
import type { Manifest } from '../model/manifest/index.js';
import type { Model } from '../model/model.js';
import { type OpenEngine, renewal } from './credentials.js';
import { engineConfig } from './engines.js';
import { readText } from './read-text.js';
import type { ReloadPart } from './reload.js';
import type { Settings } from './settings.js';

/** @throws StartProblem */
export function refuseOtherConnectors(next: Model, engines: ReadonlyMap<string, unknown>): void {
  const names = [...next.manifest.connectors.keys()];
  if (names.length === engines.size && names.every((n) => engines.has(n))) return;
  throw new StartProblem(
    'the manifest names other connectors than those that are open: restart to change them',
  );
}

/** One part for each connector whose URL is in a variable or a file. */
export function enginesParts(
  opened: ReadonlyMap<string, OpenEngine>,
  manifest: Manifest,
  settings: Settings,
): readonly ReloadPart[] {
  return [...manifest.connectors.values()].flatMap((connector) => {
    const engine = opened.get(connector.name);
    if (engine === undefined) return [];
    return [
      { prepare: async () => renewal(connector.name, engine, await engineConfig(connector, settings)) },
    ];
  });
}

/** Receivers of lineage are read at start alone. */
export function lineagePart({ lineageFile }: Settings): readonly ReloadPart[] {
  if (lineageFile === null) return [];
  const before = readText(lineageFile, 'lineage file');
  const kept = `${lineageFile}: restart to change who is told of lineage`;
  return [
    {
      prepare: () => {
        const changed = readText(lineageFile, 'lineage file') !== before;
        return { now: null, kept: changed ? kept : null, take: () => undefined };
      },
    },
  ];
}
