import {
  compileSnapshot,
  type PolicyProblem,
  PolicyProblems,
  type PolicySnapshot,
} from '../../../policy/index.js';
import {
  type Diagnostic,
  type DiagnosticSeverity,
  type Manifest,
  ManifestProblems,
  parseFragment,
  parseManifest,
  pointer,
  type TextRange,
} from '../manifest/index.js';
import type { Model } from '../served-model.js';

/** A proposed manifest or fragment, in YAML or JSON. */
export interface Proposal {
  readonly kind: 'fragment' | 'manifest';
  readonly text: string;
  /** True if positions in the text are meaningful to its sender. */
  readonly placed: boolean;
}

/** A fault of a proposal, or of the policy under it. */
export interface DraftFinding {
  readonly code: string;
  readonly severity: DiagnosticSeverity;
  readonly document: 'manifest' | 'policy';
  /** JSON Pointer into the manifest or the policy. */
  readonly path: string;
  /** Range in the text that was sent; null if it has none: in the policy, in JSON, outside a fragment. */
  readonly range: TextRange | null;
  readonly message: string;
  readonly hint: string | null;
}

export type DraftCheck =
  | { readonly ok: true; readonly manifest: Manifest; readonly snapshot: PolicySnapshot | null }
  | { readonly ok: false; readonly findings: readonly DraftFinding[] };

/** Compiles a proposal as a reload would: the manifest, then the current policy against it. Changes nothing. */
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

/** Findings from an error of a compiler. @throws `error` itself if it is of any other kind */
export function findingsIn(error: unknown, placed: boolean): readonly DraftFinding[] {
  if (error instanceof ManifestProblems) return error.diagnostics.map((d) => inText(d, placed));
  if (error instanceof PolicyProblems) return error.problems.map(inPolicy);
  throw error;
}

function inText(diagnostic: Diagnostic, placed: boolean): DraftFinding {
  const { code, severity, path, message, hint, elsewhere = false } = diagnostic;
  const range = placed && !elsewhere ? diagnostic.range : null;
  return { code, severity, document: 'manifest', path, range, message, hint };
}

function inPolicy({ code, path, message, hint }: PolicyProblem): DraftFinding {
  return { code, severity: 'error', document: 'policy', path: pointer(path), range: null, message, hint };
}
