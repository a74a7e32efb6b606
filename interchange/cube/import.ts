import { CODES } from '../../src/model/manifest/index.js';
import { assemble, type ImportResult } from '../assemble.js';
import { ImportDraft } from '../draft.js';
import { shown } from '../names.js';
import type { ImportOptions } from '../options.js';
import { Part } from '../part.js';
import type { SourceFile } from '../source.js';
import { rolesOf } from './access.js';
import { addJoins } from './join.js';
import { addMeasures, loseHidden, type MeasureContext, sharedNames } from './measure.js';
import { cubeOf, loseAccess } from './read.js';
import type { Cube } from './sql.js';

/**
 * Imports Cube data models in YAML: a manifest, and a policy draft of the access policies that can be expressed
 * exactly.
 *
 * @throws ManifestProblems if a file has the wrong shape
 */
export function importCube(files: readonly SourceFile[], options: ImportOptions): ImportResult {
  const draft = new ImportDraft();
  const cubes = new Map<string, Cube>();
  const declared = new Set<string>();
  for (const file of files) {
    const root = Part.ofFile(file);
    if (root === null) continue;
    for (const part of root.parts('cubes')) {
      const name = part.needText('name');
      if (declared.has(name.toLowerCase()))
        part.problem('name', CODES.duplicateName, `cube \`${shown(name)}\` is declared twice`);
      declared.add(name.toLowerCase());
      const cube = cubeOf(part, draft, options, cubes);
      if (cube !== null) cubes.set(name.toLowerCase(), cube);
    }
    for (const view of root.parts('views')) {
      const name = view.needText('name');
      loseAccess(view);
      view.loseAll(`view \`${shown(name)}\` has no counterpart: its members are those of its cubes`);
    }
  }
  for (const cube of cubes.values()) addJoins(cube, cubes, draft);
  const ctx: MeasureContext = { draft, cubes, made: new Map(), shared: sharedNames(cubes.values()) };
  for (const cube of cubes.values()) addMeasures(cube, ctx);
  for (const cube of cubes.values()) loseHidden(cube, ctx);
  const roles = rolesOf(cubes.values(), ctx);
  for (const file of files) file.check();
  return assemble(draft, roles, files, options);
}
