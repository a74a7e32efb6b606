import type { Model } from '../served-model.js';
import { accessBetween, type RoleChange } from './access.js';
import { changesBetween, type ManifestChange } from './changes.js';
import { check, type DraftFinding, type Proposal } from './check.js';

/** What a proposal would do if it were served now. */
export interface Judgement {
  /** Whether it could be served at all. */
  readonly ok: boolean;
  readonly diagnostics: readonly DraftFinding[];
  /** Null where it could not. */
  readonly diff: ManifestDifference | null;
}

export interface ManifestDifference {
  /** Of the manifest that would be served; equal versions are equal manifests. */
  readonly version: string;
  readonly changes: readonly ManifestChange[];
  /** Who gains or loses access under the policy of now; roles for which nothing changes are not there. */
  readonly access: readonly RoleChange[];
  /** Connectors change, which no reload does. */
  readonly needs_restart: boolean;
}

/** Judges a proposal against what is served. Pure: it stores nothing and asks no database. */
export function judge(proposal: Proposal, model: Model): Judgement {
  const checked = check(proposal, model);
  if (!checked.ok) return { ok: false, diagnostics: checked.findings, diff: null };
  return { ok: true, diagnostics: [], diff: differenceTo(checked, model) };
}

/** What serving `next` instead of `model` would change. */
export function differenceTo({ manifest, snapshot }: Model, model: Model): ManifestDifference {
  const changes = changesBetween(model.manifest, manifest);
  const access =
    model.snapshot === null || snapshot === null
      ? []
      : accessBetween({ manifest: model.manifest, snapshot: model.snapshot }, { manifest, snapshot });
  const needs_restart = changes.some((c) => c.kind === 'connector');
  return { version: manifest.version, changes, access, needs_restart };
}
