import { type Access, compile, QueryError } from 'osl-compiler';
import {
  effectiveAccess,
  hypotheticalClaims,
  NO_CIRCUMSTANCES,
  type PolicySnapshot,
} from '../../policy/index.js';
import type { FunctionEntry } from '../../src/model/graph/language.js';
import {
  type Diagnostic,
  everythingIn,
  type Manifest,
  ManifestProblems,
  parseSource,
  readManifestText,
} from '../../src/model/manifest/index.js';
import { loadModel, PolicyFault } from '../../src/service/model.js';
import { type ManifestNames, namesOf } from './names.js';
import { statementsOf } from './osql-scope.js';

export interface Project {
  readonly manifestFile: string;
  /** Path of the policy; null if there is no policy, in which case only the manifest is checked. */
  readonly policyFile: string | null;
}

export type OpenTexts = ReadonlyMap<string, string>;

export interface ValidModel {
  readonly manifest: Manifest;
  /** The compiled policy; null if it is missing or invalid. */
  readonly snapshot: PolicySnapshot | null;
}

export interface CheckResult {
  readonly diagnostics: readonly Diagnostic[];
  /** The compiled model; null if the manifest is invalid. */
  readonly sound: ValidModel | null;
  readonly names: ManifestNames | null;
}

/** Checks a project as `osl validate` does, but with the unsaved text of open files. */
export async function check(project: Project, open: OpenTexts): Promise<CheckResult> {
  const read = async (file: string): Promise<string> => open.get(file) ?? readManifestText(file);
  const { diagnostics, sound } = await loadProject(project, read);
  const [manifest, policy] = await Promise.all([
    valueIn(project.manifestFile, read),
    project.policyFile === null ? null : valueIn(project.policyFile, read),
  ]);
  return {
    diagnostics,
    sound,
    names: manifest === undefined || policy === undefined ? null : namesOf(manifest, policy),
  };
}

async function loadProject(
  { manifestFile, policyFile }: Project,
  read: (file: string) => Promise<string>,
): Promise<Pick<CheckResult, 'diagnostics' | 'sound'>> {
  try {
    const { manifest, snapshot } = await loadModel(manifestFile, policyFile ?? '', null, read);
    return { diagnostics: [], sound: { manifest, snapshot } };
  } catch (error) {
    if (error instanceof ManifestProblems) return { diagnostics: error.diagnostics, sound: null };
    if (!(error instanceof PolicyFault)) throw error;
    const sound = { manifest: error.manifest, snapshot: null };
    return { diagnostics: policyFile === null ? [] : error.cause.diagnostics, sound };
  }
}

/** The parsed YAML; undefined if it cannot be parsed. */
async function valueIn(file: string, read: (file: string) => Promise<string>): Promise<unknown> {
  try {
    return parseSource(await read(file), file).value;
  } catch (error) {
    if (error instanceof ManifestProblems) return undefined;
    throw error;
  }
}

export type CheckTask =
  | {
      readonly kind: 'check';
      readonly project: Project;
      readonly open: readonly (readonly [file: string, text: string])[];
    }
  | { readonly kind: 'visibility'; readonly manifestFile: string; readonly object: string }
  | {
      readonly kind: 'questions';
      readonly manifestFile: string;
      readonly text: string;
      readonly subject: string | null;
    };

export interface CheckResults {
  readonly check: {
    readonly diagnostics: readonly Diagnostic[];
    readonly names: ManifestNames | null;
    readonly functions: readonly FunctionEntry[];
  };
  /** Visibility of the object as Markdown; null if there is nothing to show. */
  readonly visibility: string | null;
  /** Errors in queries; null if no valid manifest has been checked yet. */
  readonly questions: readonly QuestionFault[] | null;
}

export interface CheckRequest {
  readonly id: number;
  readonly task: CheckTask;
}

export type CheckReply =
  | { readonly id: number; readonly result: CheckResults[CheckTask['kind']] }
  | { readonly id: number; readonly failed: string };

interface QuestionFault {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly from: number;
  readonly to: number;
}

const MOST_STATEMENTS = 500;

/**
 * Returns the errors in the queries of an `.osql` file, which are compiled but not run. Access is that of `subject`
 * with all its roles; if `subject` is null, everything is visible.
 */
export function questionFaults(
  text: string,
  model: ValidModel,
  subject: string | null,
): readonly QuestionFault[] {
  const access = accessOf(model, subject);
  return statementsOf(text)
    .slice(0, MOST_STATEMENTS)
    .flatMap(({ from, to }) => {
      try {
        compile(text.slice(from, to), model.manifest.catalog, access);
        return [];
      } catch (error) {
        if (!(error instanceof QueryError)) throw error;
        return [faultOf(error, text, from, to)];
      }
    });
}

/** A name with its qualifiers, a text, or one character. */
const WORD =
  /^(?:"(?:[^"]|"")*"|[\p{L}\p{M}\p{N}_$]+)(?:\.(?:"(?:[^"]|"")*"|[\p{L}\p{M}\p{N}_$]+))*|^'(?:[^']|'')*'|^\S/u;

function faultOf(
  { code, message, hint, position }: QueryError,
  text: string,
  from: number,
  to: number,
): QuestionFault {
  if (position === null) return { code, message, hint, from, to };
  const at = from + position.offset;
  const [word = ''] = WORD.exec(text.slice(at, to)) ?? [];
  return { code, message, hint, from: at, to: Math.min(to, at + Math.max(1, word.length)) };
}

function accessOf({ manifest: { catalog }, snapshot }: ValidModel, subject: string | null): Access {
  if (subject === null || snapshot === null) return everythingIn(catalog);
  const identity = hypotheticalClaims({ chain: [subject], roles: null }, snapshot);
  return effectiveAccess(identity, snapshot, catalog, { ...NO_CIRCUMSTANCES, now: Date.now() });
}
