/** Models of other tools as manifests, and manifests as models of other tools. */
export type { ImportResult } from './assemble.js';
export { exportModel, manifestText, ossieText, policyText } from './export.js';
export { importModel, type ModelFormat } from './import-model.js';
export { DEFAULT_OPTIONS, type ImportOptions } from './options.js';
export { countLosses, formatLoss } from './report.js';
export type { ImportText } from './source.js';
