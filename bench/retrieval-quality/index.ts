export { banking77Bench } from './banking77.js';
export { chunkSpansBench } from './chunk-spans.js';
