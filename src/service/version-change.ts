import { compilingSnapshot } from '../../policy/index.js';
import { inTurns } from '../base/in-turns.js';
import { compilePublishable, EMPTY_OVERLAY } from '../model/manifest/index.js';
import type { Model } from '../model/model.js';
import type { ServedModel } from '../model/served-model.js';
import type { Prepared, Reloaded } from './reload.js';
import type { Service } from './service.js';
import type { Serving } from './serving.js';

/** What all processes of a server take up together. */
export type Change =
  /** The files anew. `brokenSince`: a policy that is broken has been so since then, ms since 1970. */
  | { readonly kind: 'reload'; readonly brokenSince?: number }
  /** What another process has published. */
  | { readonly kind: 'version' }
  /** A policy, and what other gateways have published. `same`: the policy that serves stays. */
  | { readonly kind: 'policy'; readonly same?: boolean; readonly brokenSince?: number };

const NOTHING: Reloaded = Object.freeze({ now: [], kept: [] });

/**
 * What another process has published, over the file as it was last loaded here, and not in force yet. Who published it
 * has found that it can be served.
 *
 * @throws PublishedDamaged
 */
export async function preparedVersion(
  service: Pick<Service, 'publishing' | 'drafting' | 'log'>,
  serving: Serving,
): Promise<Prepared> {
  const { publishing, log } = service;
  const { versions } = publishing;
  const { model } = serving;
  await versions.renew();
  const { head } = versions;
  if (head?.id === model.published?.id) return { take: async () => NOTHING, drop: async () => undefined };
  const next = model.over(await composed(service, model, head ?? EMPTY_OVERLAY), head);
  return {
    take: async () => {
      serving.takePublished(next);
      log.info('took up what was published', { manifest: next.manifest.version });
      return NOTHING;
    },
    drop: async () => undefined,
  };
}

type Overlay = typeof EMPTY_OVERLAY;

async function composed(
  { drafting }: Pick<Service, 'drafting'>,
  served: ServedModel,
  head: Overlay,
): Promise<Model> {
  const { manifest, snapshot, file, published } = served;
  const { document: base } = file;
  // Nobody is answered, so nobody waits for the compiler.
  if (snapshot === null) return { manifest: compilePublishable(base, head.objects).manifest, snapshot };
  const { objects } = published ?? EMPTY_OVERLAY;
  const ground = { base, objects, manifest, snapshot };
  const worked = await drafting.workOut({ action: 'rollback', to: head }, ground, 'service');
  if (!worked.ok) throw new Error('what another worker published does not compile here');
  const next = worked.manifest;
  const steps = compilingSnapshot(snapshot.document, next.catalog, next.tenant);
  return { manifest: next, snapshot: await inTurns(steps) };
}
