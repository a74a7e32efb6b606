/** Models of other tools as manifests, and manifests as models of other tools. */
export type { Imported } from './assemble.js';
export { type Exported, exportModel, ossieText } from './export.js';
export { FORMATS, type Format, importModel } from './import-model.js';
export { DEFAULT_OPTIONS, type ImportOptions } from './options.js';
export { countLosses, formatLoss, type Loss, type LossKind } from './report.js';
export type { SourceText } from './source.js';
export { manifestText, policyText } from './text.js';
