import { LOOKER, LOOKER_STUDIO } from './looker.js';
import { METABASE } from './metabase.js';
import { ANY_TOOL, HOLISTICS, THOUGHTSPOT } from './others.js';
import { POWER_BI } from './power-bi.js';
import type { Tool } from './shape.js';
import { SUPERSET } from './superset.js';
import { TABLEAU } from './tableau.js';

export const SHAPES: readonly Tool[] = [
  TABLEAU,
  SUPERSET,
  METABASE,
  POWER_BI,
  LOOKER_STUDIO,
  LOOKER,
  THOUGHTSPOT,
  HOLISTICS,
  ANY_TOOL,
];
