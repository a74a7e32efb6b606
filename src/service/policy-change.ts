import { compilingSnapshot, PolicyProblems, type PolicySnapshot } from '../../policy/index.js';
import { inTurns } from '../base/in-turns.js';
import {
  compilePublishable,
  EMPTY_OVERLAY,
  type Manifest,
  ManifestProblems,
  parsePolicyDocument,
} from '../model/manifest/index.js';
import type { Model } from '../model/model.js';
import type { Publishing, Version } from '../publishing/store/index.js';

/** What serves now, and the published version that its manifest has. */
export interface Ground {
  readonly publishing: Pick<Publishing, 'versions' | 'file'>;
  readonly model: Model;
  readonly head: string | null;
}

/** What would serve, whole. */
export interface Followed {
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
  /** The published version in it. */
  readonly head: string | null;
}

/**
 * The manifest file as it was last loaded, what is published now, and a policy, compiled against each other: what a
 * gateway serves once others have published, or a policy was activated.
 *
 * @param policy a text to read; null for the policy that serves
 * @throws ManifestProblems, PolicyProblems, PublishedDamaged: then it cannot be served here
 */
export async function followed(
  { publishing, model, head }: Ground,
  policyFile: string,
  policy: string | null,
): Promise<Followed> {
  const { versions, file } = publishing;
  await versions.renew();
  const now = versions.head?.id ?? null;
  const manifest = now === head ? model.manifest : layered(file().document, versions.head);
  const { catalog, tenant } = manifest;
  if (policy === null) {
    const { snapshot } = model;
    if (snapshot === null) throw new TypeError('no policy serves');
    return {
      manifest,
      snapshot: await inTurns(compilingSnapshot(snapshot.document, catalog, tenant)),
      head: now,
    };
  }
  const source = parsePolicyDocument(policy, policyFile);
  try {
    const snapshot = await inTurns(compilingSnapshot(source.document, catalog, tenant));
    return { manifest, snapshot, head: now };
  } catch (error) {
    if (!(error instanceof PolicyProblems)) throw error;
    throw new ManifestProblems(source.diagnostics(error.problems), policy);
  }
}

function layered(base: Parameters<typeof compilePublishable>[0], head: Version | null): Manifest {
  return compilePublishable(base, (head ?? EMPTY_OVERLAY).objects).manifest;
}
