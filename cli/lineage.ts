import { columnLineage, compile, type Influence, ready } from 'osl-compiler';
import { version } from '../src/base/package-root.js';
import { headIn } from '../src/model/versions/versions.js';
import { accessOfChain } from '../src/service/lineage/description.js';
import { namespaceOf } from '../src/service/lineage/lineage.js';
import { columnLineageFacet, producerOf } from '../src/service/lineage/openlineage.js';
import { readJournal, storeReplayRequest } from '../src/service/lineage/outbox/outbox.js';
import { journalIn, type OutboxEntry, OutboxState } from '../src/service/lineage/outbox/state.js';
import { loadModel, publishedDir } from '../src/service/model.js';
import { lineageDirs } from '../src/service/process-files.js';
import { queryText } from './ask.js';
import { compiled } from './compiled.js';
import { failure, usage } from './exit.js';
import { type ServerFlags, settingsOf, settingsOfModel } from './flags.js';
import { counted, print, printJson, visible } from './output.js';
import { runningServer } from './server-file.js';

export interface OutboxFlags {
  readonly dataDir?: string;
  readonly endpoint?: string;
  readonly json?: true;
}

export interface UndeliveredEvent {
  readonly id: string;
  readonly kind: string;
  readonly endpoint: string;
  /** Time at which the entry was added to the outbox, RFC 3339. */
  readonly created: string;
  readonly attempts: number;
  /** Time of the next attempt, RFC 3339; null if it can be made now, or if the entry is dead (given up). */
  readonly next: string | null;
  readonly reason: string | null;
  readonly event: unknown;
}

export async function undelivered(
  which: 'pending' | 'dead',
  flags: OutboxFlags,
): Promise<ReadonlyMap<string, readonly UndeliveredEvent[]>> {
  const found = new Map<string, readonly UndeliveredEvent[]>();
  for (const dir of lineageDirs(settingsOf(flags).dataDir)) found.set(dir, await inOutbox(dir, which, flags));
  return found;
}

async function inOutbox(
  dir: string,
  which: 'pending' | 'dead',
  flags: OutboxFlags,
): Promise<readonly UndeliveredEvent[]> {
  const state = OutboxState.of(await readJournal<OutboxEntry>(journalIn(dir)));
  return [...state.messages.values()].flatMap(({ id, kind, at, body, targets }) =>
    [...targets]
      .filter(
        ([endpoint, t]) => t.state === which && (flags.endpoint === undefined || endpoint === flags.endpoint),
      )
      .map(
        ([endpoint, { attempts, due, why }]): UndeliveredEvent => ({
          id,
          kind,
          endpoint,
          created: new Date(at).toISOString(),
          attempts,
          next: which === 'pending' && due > 0 ? new Date(due).toISOString() : null,
          reason: why,
          event: JSON.parse(body),
        }),
      ),
  );
}

export async function runList(which: 'pending' | 'dead', flags: OutboxFlags): Promise<void> {
  const events = [...(await undelivered(which, flags)).values()].flat();
  if (flags.json) {
    printJson(events);
    return;
  }
  if (events.length === 0) print(which === 'pending' ? 'nothing waits' : 'there are no dead letters');
  for (const { id, endpoint, created, attempts, next, reason } of events) {
    const parts = [created, id, endpoint, counted(attempts, 'attempt', 'attempts')];
    if (next !== null) parts.push(`next ${next}`);
    if (reason !== null && reason !== '') parts.push(reason);
    print(visible(parts.join('  ')));
  }
}

export async function runReplay(
  id: string | undefined,
  flags: OutboxFlags & { readonly all?: true },
): Promise<void> {
  if ((id === undefined) === (flags.all === undefined)) throw usage('name one event, or say --all');
  const dead = await undelivered('dead', flags);
  const meant = (e: UndeliveredEvent): boolean => id === undefined || e.id === id;
  const asked = [...dead.values()].flat().filter(meant);
  if (id !== undefined && asked.length === 0)
    throw failure(`no dead letter has the id ${id}: \`osl lineage dead\` lists them`);
  for (const [dir, events] of dead) {
    if (!events.some(meant)) continue;
    await storeReplayRequest(dir, { id: id ?? null, endpoint: flags.endpoint ?? null });
  }
  const running = runningServer(settingsOf(flags).dataDir) !== null;
  if (flags.json) {
    printJson({
      replayed: asked.map(({ id: event, endpoint }) => ({ id: event, endpoint })),
      server_running: running,
    });
    return;
  }
  const count = counted(asked.length, 'dead letter', 'dead letters');
  print(
    running || asked.length === 0
      ? `${count} to be sent again`
      : `${count} to be sent again once a server runs here`,
  );
}

interface ShowFlags extends ServerFlags {
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly sql?: true;
}

export async function runShow(argument: string | undefined, flags: ShowFlags): Promise<void> {
  const chain = flags.chain ?? (flags.subject === undefined ? [] : [flags.subject]);
  if (chain.length === 0) throw usage('name the caller: --subject user:analyst');
  const text = await queryText(argument);
  const settings = settingsOfModel(flags);
  await ready();
  const published = flags.dataDir === undefined ? null : await headIn(publishedDir(settings));
  const { manifest, snapshot } = await loadModel(settings.manifestFile, settings.policyFile, published);
  const stranger = chain.find((name) => snapshot?.subjects.has(name) !== true);
  if (snapshot === null || stranger !== undefined)
    throw usage(`subject \`${stranger}\` is not in the policy`);
  const plan = compiled(() =>
    compile(text, manifest.catalog, accessOfChain(chain, snapshot, manifest), {
      world: flags.sql === true ? 'physical' : 'semantic',
    }),
  );
  const { outputs, rows } = columnLineage(plan);
  if (flags.json) {
    const namespace = namespaceOf({ namespace: null }, snapshot.tenant);
    printJson(columnLineageFacet(outputs, rows, { producer: producerOf(version()), namespace }));
    return;
  }
  for (const { name, inputs } of outputs) report(name, inputs);
  report('(which rows, and their order)', rows);
}

function report(name: string, inputs: readonly Influence[]): void {
  print(visible(name));
  if (inputs.length === 0) print('  no column');
  for (const { object, column, transformations } of inputs) {
    const ways = transformations.map((t) =>
      t.type === 'DIRECT'
        ? `${t.subtype}${t.masking ? ', masking' : ''}`
        : `${t.subtype}${t.policy ? ', by policy' : ''}`,
    );
    print(visible(`  ${object}.${column}  ${ways.join('; ')}`));
  }
}
