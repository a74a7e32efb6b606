export { Ask as Screen } from './Ask.js';
