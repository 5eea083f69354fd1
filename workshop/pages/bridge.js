// The way from the page to the kernel: a choice in an HTML output reaches workshop/explore/predict.py.
export default {
  initialize({model}) {
    const heard = event => model.send(event.detail);
    document.addEventListener('workshop-choice', heard);
    return () => document.removeEventListener('workshop-choice', heard);
  },
};
