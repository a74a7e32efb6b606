export { Policy as Screen } from './Policy.js';
