import type { Model } from '../served-model.js';
import { accessBetween, type RoleChange } from './access.js';
import { changesBetween, type ManifestChange } from './changes.js';
import { check, type DraftFinding, type Proposal } from './check.js';

/** Effects of a proposal if it were served now. */
export interface Judgement {
  /** True if it could be served. */
  readonly ok: boolean;
  readonly diagnostics: readonly DraftFinding[];
  /** Null if it could not be served. */
  readonly diff: ManifestDifference | null;
}

export interface ManifestDifference {
  /** Version of the manifest that would be served; equal versions are equal manifests. */
  readonly version: string;
  readonly changes: readonly ManifestChange[];
  /** Roles that gain or lose access under the current policy; roles without a change are left out. */
  readonly access: readonly RoleChange[];
  /** True if connectors change, which needs a restart; a reload does not apply it. */
  readonly needs_restart: boolean;
}

/** Judges a proposal against what is served. Pure: it stores nothing and asks no database. */
export function judge(proposal: Proposal, model: Model): Judgement {
  const checked = check(proposal, model);
  if (!checked.ok) return { ok: false, diagnostics: checked.findings, diff: null };
  return { ok: true, diagnostics: [], diff: differenceTo(checked, model) };
}

/** Changes if `next` were served instead of `model`. */
export function differenceTo({ manifest, snapshot }: Model, model: Model): ManifestDifference {
  const changes = changesBetween(model.manifest, manifest);
  const access =
    model.snapshot === null || snapshot === null
      ? []
      : accessBetween({ manifest: model.manifest, snapshot: model.snapshot }, { manifest, snapshot });
  const needs_restart = changes.some((c) => c.kind === 'connector');
  return { version: manifest.version, changes, access, needs_restart };
}
