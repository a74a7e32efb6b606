import { queryError } from 'osl-compiler';
import { compileSnapshot, type PolicySnapshot } from '../../../policy/index.js';
import {
  compilePublishable,
  conflictsBetween,
  DEPRECABLE,
  type FragmentDocument,
  type Manifest,
  type ManifestDocument,
  memberAt,
  NotPublishable,
  type Overlay,
  type Publishable,
  parsePublishable,
  pathsIn,
  withoutPublished,
} from '../manifest/index.js';
import { type DraftFinding, differenceTo, findingsIn, type ManifestDifference } from './check.js';

/** A publishing operation. Objects are named as `section.name`, following the manifest. */
export type PublishStep =
  | { readonly action: 'publish'; readonly text: string; readonly placed: boolean }
  /** Maps objects to the reason for deprecating them; null removes a deprecation. */
  | { readonly action: 'deprecate'; readonly reasons: ReadonlyMap<string, string | null> }
  | { readonly action: 'withdraw'; readonly paths: readonly string[] }
  | { readonly action: 'rollback'; readonly to: Overlay };

interface PublishedState {
  /** The manifest file's document. */
  readonly base: ManifestDocument;
  readonly objects: FragmentDocument;
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

type StepOutcome =
  | {
      readonly ok: true;
      readonly objects: FragmentDocument;
      readonly manifest: Manifest;
      readonly snapshot: PolicySnapshot;
      readonly diff: ManifestDifference;
    }
  | { readonly ok: false; readonly findings: readonly DraftFinding[] };

/**
 * Computes the result of a step as a reload would, under the current policy. Pure.
 *
 * @throws QueryError E2101 if a part cannot be published, E1001 for unknown objects, E4090 for objects in the wrong
 * state
 */
export function applyStep(step: PublishStep, state: PublishedState): StepOutcome {
  try {
    const { objects, manifest } = compileStep(step, state);
    const snapshot = compileSnapshot(state.snapshot.document, manifest.catalog, manifest.tenant);
    const { manifest: before, snapshot: policy } = state;
    const diff = differenceTo({ manifest, snapshot }, { manifest: before, snapshot: policy });
    return { ok: true, objects, manifest, snapshot, diff };
  } catch (error) {
    if (error instanceof NotPublishable) throw queryError('notPublishable', { what: error.what });
    return { ok: false, findings: findingsIn(error, step.action === 'publish' && step.placed) };
  }
}

function compileStep(step: PublishStep, state: PublishedState): Publishable {
  const { base, objects, manifest } = state;
  switch (step.action) {
    case 'publish':
      return parsePublishable(step.text, base, objects, manifest.document);
    case 'deprecate': {
      const fragment = JSON.stringify(markDeprecated(step.reasons, manifest.document));
      return parsePublishable(fragment, base, objects, manifest.document);
    }
    case 'withdraw': {
      const published = new Set(pathsIn(objects));
      for (const path of step.paths) checkWithdrawal(path, published, state);
      return compilePublishable(base, withoutPublished(objects, new Set(step.paths)));
    }
    case 'rollback':
      checkRollback(step.to, base);
      return compilePublishable(base, step.to.objects);
  }
}

/** Returns a fragment that repeats each object in `reasons` with its new value of `deprecated`. */
function markDeprecated(
  reasons: ReadonlyMap<string, string | null>,
  document: ManifestDocument,
): FragmentDocument {
  const fragment: Record<string, Record<string, unknown>> = {};
  for (const [path, reason] of reasons) {
    const section = DEPRECABLE.find((s) => path.startsWith(`${s}.`));
    const member = memberAt(document, path);
    if (section === undefined || typeof member !== 'object' || member === null) throw unknownObject(path);
    const { deprecated: _, ...rest }: { deprecated?: unknown } = { ...member };
    const members = (fragment[section] ??= Object.create(null) as Record<string, unknown>);
    members[path.slice(section.length + 1)] = reason === null ? rest : { ...rest, deprecated: reason };
  }
  return fragment;
}

/**
 * Refuses to withdraw an object that was never published. Also refuses one that can be deprecated but is not, unless
 * the manifest file declares it too.
 */
function checkWithdrawal(
  path: string,
  published: ReadonlySet<string>,
  { base, manifest }: PublishedState,
): void {
  if (!published.has(path)) throw unknownObject(path, 'was not published');
  const inFile = memberAt(base, path) !== undefined;
  const canBeMarked = DEPRECABLE.some((s) => path.startsWith(`${s}.`));
  if (inFile || !canBeMarked || manifest.deprecated.has(path)) return;
  throw queryError('wrongState', {
    detail: `\`${path}\` is not deprecated`,
    hint: 'deprecate it first, so that whoever uses it hears of that',
  });
}

function checkRollback(to: Overlay, base: ManifestDocument): void {
  const [conflict] = conflictsBetween(base, to);
  if (conflict === undefined) return;
  throw queryError('wrongState', {
    detail: `the manifest file has changed since that version: ${conflict}`,
    hint: 'publish the objects of it that are still wanted',
  });
}

function unknownObject(path: string, what = 'is not declared, or cannot be deprecated') {
  const hint = 'objects are named as in a manifest: `entities.order`, `metrics.revenue`';
  return queryError('unresolvable', { detail: `\`${path}\` ${what}`, hint });
}
