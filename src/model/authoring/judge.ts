import type { Model } from '../served-model.js';
import { accessBetween, type RoleChange } from './access.js';
import { changesBetween, type ManifestChange } from './changes.js';
import { check, type DraftFinding, type Proposal } from './check.js';

export interface Judgement {
  readonly ok: boolean;
  readonly diagnostics: readonly DraftFinding[];
  /** Null if `ok` is false. */
  readonly diff: ManifestDifference | null;
}

export interface ManifestDifference {
  readonly version: string;
  readonly changes: readonly ManifestChange[];
  readonly access: readonly RoleChange[];
  /** True if connectors change, which a reload does not apply. */
  readonly needs_restart: boolean;
}

/** Compares a proposal with the served model. Pure. */
export function judge(proposal: Proposal, model: Model): Judgement {
  const checked = check(proposal, model);
  if (!checked.ok) return { ok: false, diagnostics: checked.findings, diff: null };
  return { ok: true, diagnostics: [], diff: differenceTo(checked, model) };
}

export function differenceTo({ manifest, snapshot }: Model, model: Model): ManifestDifference {
  const changes = changesBetween(model.manifest, manifest);
  const access =
    model.snapshot === null || snapshot === null
      ? []
      : accessBetween({ manifest: model.manifest, snapshot: model.snapshot }, { manifest, snapshot });
  const needs_restart = changes.some((c) => c.kind === 'connector');
  return { version: manifest.version, changes, access, needs_restart };
}
