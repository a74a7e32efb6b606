import { queryError } from 'osl-compiler';
import { stringify } from 'yaml';
import {
  compileSnapshot,
  type PolicyProblem,
  PolicyProblems,
  type PolicySnapshot,
} from '../../../policy/index.js';
import { type AdoptionCandidate, draftOf } from '../discovery/index.js';
import { fullView, type Match, resolve, shortName } from '../graph/index.js';
import {
  type Diagnostic,
  type DiagnosticSeverity,
  type FragmentDocument,
  type Manifest,
  ManifestProblems,
  parseFragment,
  parseManifest,
  pointer,
  type TextRange,
  unpublishablePart,
} from '../manifest/index.js';
import type { Model } from '../served-model.js';
import { accessBetween, changesBetween, type ManifestChange, type RoleChange } from './changes.js';

/** A proposed manifest or fragment, in YAML or JSON. */
export interface Proposal {
  readonly kind: 'fragment' | 'manifest';
  readonly text: string;
  /** True if the sender can use positions in the text. */
  readonly placed: boolean;
}

/** A fault in a proposal, or in the policy when compiled against it. */
export interface DraftFinding {
  readonly code: string;
  readonly severity: DiagnosticSeverity;
  readonly document: 'manifest' | 'policy';
  /** JSON Pointer into the manifest or the policy. */
  readonly path: string;
  /**
   * Range in the text that was sent; null if the fault is in the policy or outside the fragment, or if the sender
   * cannot use positions.
   */
  readonly range: TextRange | null;
  readonly message: string;
  readonly hint: string | null;
}

type DraftCheck =
  | { readonly ok: true; readonly manifest: Manifest; readonly snapshot: PolicySnapshot | null }
  | { readonly ok: false; readonly findings: readonly DraftFinding[] };

/** Compiles a proposal as a reload would: first the manifest, then the current policy against it. Changes nothing. */
export function check({ kind, text, placed }: Proposal, model: Model): DraftCheck {
  try {
    const manifest =
      kind === 'manifest' ? parseManifest(text, kind) : parseFragment(text, kind, model.manifest.document);
    const policy = model.snapshot?.document;
    const snapshot = policy === undefined ? null : compileSnapshot(policy, manifest.catalog, manifest.tenant);
    return { ok: true, manifest, snapshot };
  } catch (error) {
    return { ok: false, findings: findingsIn(error, placed) };
  }
}

/** Converts a manifest or policy compiler's error to findings. @throws `error` itself if it is any other error */
export function findingsIn(error: unknown, placed: boolean): readonly DraftFinding[] {
  if (error instanceof ManifestProblems) return error.diagnostics.map((d) => manifestFinding(d, placed));
  if (error instanceof PolicyProblems) return error.problems.map(policyFinding);
  throw error;
}

function manifestFinding(diagnostic: Diagnostic, placed: boolean): DraftFinding {
  const { code, severity, path, message, hint, elsewhere = false } = diagnostic;
  const range = placed && !elsewhere ? diagnostic.range : null;
  return { code, severity, document: 'manifest', path, range, message, hint };
}

function policyFinding({ code, path, message, hint }: PolicyProblem): DraftFinding {
  return { code, severity: 'error', document: 'policy', path: pointer(path), range: null, message, hint };
}

export interface Judgement {
  readonly ok: boolean;
  readonly diagnostics: readonly DraftFinding[];
  readonly diff: ManifestDifference | null;
}

export interface ManifestDifference {
  readonly version: string;
  readonly changes: readonly ManifestChange[];
  readonly access: readonly RoleChange[];
  /** True if connectors change: a reload does not apply such a change, so a restart is needed. */
  readonly needs_restart: boolean;
}

/** Compares a proposal with the served model; warns of a fragment that only the manifest file may contain. Pure. */
export function judge(proposal: Proposal, model: Model): Judgement {
  const checked = check(proposal, model);
  if (!checked.ok) return { ok: false, diagnostics: checked.findings, diff: null };
  const what =
    proposal.kind === 'fragment' ? unpublishablePart(proposal.text, model.manifest.document) : null;
  return {
    ok: true,
    diagnostics: what === null ? [] : [fileOnly(what)],
    diff: differenceTo(checked, model),
  };
}

function fileOnly(what: string): DraftFinding {
  const { code, message, hint } = queryError('notPublishable', { what });
  return { code, severity: 'warning', document: 'manifest', path: '', range: null, message, hint };
}

export function differenceTo({ manifest, snapshot }: Model, model: Model): ManifestDifference {
  const { changes, touched } = changesBetween(model.manifest, manifest);
  const access =
    model.snapshot === null || snapshot === null
      ? []
      : accessBetween(
          { manifest: model.manifest, snapshot: model.snapshot },
          { manifest, snapshot },
          touched,
        );
  const needs_restart = changes.some((c) => c.kind === 'connector');
  return { version: manifest.version, changes, access, needs_restart };
}

/** A proposed fragment. It is not stored; its reader may edit, check and publish it. */
export interface Suggestion {
  readonly fragment: {
    readonly yaml: string;
    readonly json: FragmentDocument;
  };
  readonly diagnostics: readonly DraftFinding[];
  readonly notes: readonly string[];
}

export function suggestRelation(candidate: AdoptionCandidate, model: Model): Suggestion {
  const { fragment, notes } = draftOf(candidate, model.manifest);
  return suggestionOf(fragment, notes, model);
}

/** Drafts a lexicon term that refers to the best match in the whole graph; null if nothing matches. */
export function suggestTerm(term: string, model: Model): Suggestion | null {
  const { matches } = resolve(term, fullView(model.manifest));
  const targets = matches.filter(canBeMeant).map((m) => ({ ...m, name: shortName(m.fqn) }));
  const [best, ...others] = targets;
  if (best === undefined) return null;
  const notes = [`${best.name}: ${best.score}, by its ${best.via}`];
  if (others.length > 0) notes.push(`it could also mean ${others.map((o) => o.name).join(', ')}`);
  if (model.manifest.lexicon.has(term)) notes.push('the lexicon has this term: the draft would replace it');
  const lexicon = Object.assign(Object.create(null), { [term]: { refers_to: best.name } });
  return suggestionOf({ lexicon }, notes, model);
}

/** True for objects that a lexicon term can refer to: entities, their columns, metrics and facets. */
function canBeMeant({ kind, fqn }: Match): boolean {
  if (kind === 'bridge' || kind === 'derived') return false;
  return kind !== 'column' || fqn.startsWith('osl.entities.');
}

function suggestionOf(json: FragmentDocument, notes: readonly string[], model: Model): Suggestion {
  const yaml = stringify(json, { nullStr: '', lineWidth: 110 });
  const checked = check({ kind: 'fragment', text: yaml, placed: false }, model);
  return { fragment: { yaml, json }, diagnostics: checked.ok ? [] : checked.findings, notes };
}
