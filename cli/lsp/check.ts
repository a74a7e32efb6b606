import type { PolicySnapshot } from '../../policy/index.js';
import {
  type Diagnostic,
  type Manifest,
  ManifestProblems,
  parseSource,
  readManifestText,
} from '../../src/model/manifest/index.js';
import { loadModel, PolicyFault } from '../../src/service/model.js';
import { type ManifestNames, namesOf } from './names.js';

/** A manifest and the policy beside it, absolute. */
export interface Project {
  readonly manifestFile: string;
  /** Null where there is none: then the manifest is checked by itself. */
  readonly policyFile: string | null;
}

/** Texts that an editor has and the disk has not, by file. */
export type OpenTexts = ReadonlyMap<string, string>;

/** What is right, as it would serve. */
export interface SoundModel {
  readonly manifest: Manifest;
  /** Null where the policy is missing or wrong. */
  readonly snapshot: PolicySnapshot | null;
}

export interface CheckResult {
  readonly diagnostics: readonly Diagnostic[];
  /** Null where the manifest is wrong. */
  readonly sound: SoundModel | null;
  /** Null where a file is no YAML. */
  readonly names: ManifestNames | null;
}

/** Checks a project as `osl validate` does, with what is open in the place of what is saved. */
export async function check(project: Project, open: OpenTexts): Promise<CheckResult> {
  const read = async (file: string): Promise<string> => open.get(file) ?? readManifestText(file);
  const { diagnostics, sound } = await judged(project, read);
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

async function judged(
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

/** What the file holds; undefined where it cannot be read. */
async function valueIn(file: string, read: (file: string) => Promise<string>): Promise<unknown> {
  try {
    return parseSource(await read(file), file).value;
  } catch (error) {
    if (error instanceof ManifestProblems) return undefined;
    throw error;
  }
}
