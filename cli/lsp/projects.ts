import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Project } from './check.js';
import type { FileKind } from './schema-at.js';

/** Files that flags name, absolute; else they are found beside what is edited. */
export interface ProjectFiles {
  readonly manifestFile: string | null;
  readonly policyFile: string | null;
}

/** How the server is started. */
export interface LspOptions extends ProjectFiles {
  /** As whom questions are checked; null: as who sees everything. */
  readonly subject: string | null;
}

/** What an open file is to this server. */
export type DocumentKind = FileKind | 'questions';

/** The file of a document; null for one that is on no disk. */
export function fileOf(uri: string): string | null {
  try {
    return uri.startsWith('file:') ? resolve(fileURLToPath(uri)) : null;
  } catch {
    return null; // a URI of another machine
  }
}

const MANIFEST_KEY = /^(connectors|entities|relationships|bridges|facets|metrics|raw_sql):/m;
const POLICY_KEY = /^(subjects|roles|masks):/m;
/** Characters of a file that are looked at to tell what it is. */
const BEGINNING = 4_096;

/** What a file is: by its name, the schema that its first lines name, or its keys; null for what is none of ours. */
export function kindOf(
  file: string,
  text: string,
  { manifestFile, policyFile }: ProjectFiles,
): DocumentKind | null {
  if (/\.osql$/i.test(file)) return 'questions';
  if (!/\.ya?ml$/i.test(file)) return null;
  if (file === manifestFile) return 'manifest';
  if (file === policyFile) return 'policy';
  const [, schema] = /\$schema=\S*?(manifest|policy)\.schema\.json/.exec(text.slice(0, BEGINNING)) ?? [];
  if (schema === 'manifest' || schema === 'policy') return schema;
  if (/(^|[/\\])manifest\.ya?ml$/.test(file)) return 'manifest';
  if (/(^|[/\\])policy\.ya?ml$/.test(file)) return 'policy';
  if (!/^version:/m.test(text.slice(0, BEGINNING))) return null;
  if (POLICY_KEY.test(text) && !MANIFEST_KEY.test(text)) return 'policy';
  return MANIFEST_KEY.test(text) && !POLICY_KEY.test(text) ? 'manifest' : null;
}

/** The manifest and policy that a file belongs to; null where there is no manifest for it. */
export function projectOf(file: string, kind: DocumentKind, given: ProjectFiles): Project | null {
  const dir = dirname(file);
  switch (kind) {
    case 'manifest':
      return { manifestFile: file, policyFile: given.policyFile ?? existing(join(dir, 'policy.yaml')) };
    case 'policy': {
      const manifestFile = given.manifestFile ?? existing(join(dir, 'manifest.yaml'));
      return manifestFile === null ? null : { manifestFile, policyFile: file };
    }
    case 'questions': {
      const manifestFile = given.manifestFile ?? above(dir);
      if (manifestFile === null) return null;
      return projectOf(manifestFile, 'manifest', given);
    }
  }
}

/** The nearest `manifest.yaml` in a folder or one above it. */
function above(dir: string): string | null {
  const found = existing(join(dir, 'manifest.yaml'));
  if (found !== null || dirname(dir) === dir) return found;
  return above(dirname(dir));
}

function existing(file: string): string | null {
  return existsSync(file) ? file : null;
}
