/** Imports other tools' models as manifests, and exports manifests. */

export type { ImportResult } from './assemble.js';
export {
  exportModel,
  importModel,
  type ModelFormat,
  manifestText,
  ossieText,
  policyText,
} from './import-model.js';
export { DEFAULT_OPTIONS, type ImportOptions } from './options.js';
export type { ImportText } from './source.js';
export { countLosses, formatLoss } from './source.js';
