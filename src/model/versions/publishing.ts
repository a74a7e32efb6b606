import { join } from 'node:path';
import { Serial } from '../../base/serial.js';
import type { ServedModel } from '../served-model.js';
import { type DraftChangeListener, Drafts } from './drafts.js';
import { type VersionFile, VersionStore } from './versions.js';

export interface PublicationStore {
  readonly versions: VersionStore;
  readonly drafts: Drafts;
  /** Runs `work` after all earlier changes and reloads; nothing else changes until it ends. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Publishes to all gateways, if there are others: `outdated` if one of them has published, or serves another
   * policy; `unavailable` if they cannot be reached.
   */
  share(sealed: VersionFile): Promise<'shared' | 'outdated' | 'unavailable'>;
  /** Replaces the served model; running queries keep theirs. Resolves once lineage is notified; never rejects. */
  serve(model: ServedModel): Promise<void>;
}

/** @throws PublishedDamaged */
export async function createPublishing(
  dir: string,
  {
    sweeps,
    alone,
    draftChanged,
    ...served
  }: {
    /** True if this process cleans up the directory. */
    readonly sweeps: boolean;
    /** Runs `work` while no other process changes anything. */
    readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
    readonly draftChanged: DraftChangeListener;
    readonly share: PublicationStore['share'];
    readonly serve: (model: ServedModel) => Promise<void>;
  },
): Promise<PublicationStore> {
  const versions = await VersionStore.open(dir);
  if (sweeps) await versions.sweep();
  const drafts = await Drafts.open(join(dir, 'drafts'), draftChanged);
  const changes = new Serial();
  return Object.freeze({
    versions,
    drafts,
    exclusively: <T>(work: () => Promise<T>) => changes.run(() => alone(work)),
    ...served,
  });
}
